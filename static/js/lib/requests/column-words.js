// @ts-check
// The columns of the ledger in plain words, with their units, by what they tell of.

/** @type {readonly (readonly [string, Readonly<Record<string, string>>])[]} */
export const GROUPS = [
  ["How it was sent", {
    mode: "Mode", reason: "Why", epoch_reset_reason: "What reset the epoch", eligible: "Could have been continued",
    changed_fields: "Fields that changed", fallback_reason: "Cause of a worse wire", attempts: "Attempts",
    connection: "Connection", items_sent: "Items sent", items_total: "Items of the full input", baseline_items: "Items held already",
    bytes_sent: "Bytes sent", bytes_total: "Bytes of the full request", frozen_items: "Frozen items",
  }],
  ["Where it parted from what was held", {
    diverged_at: "First item that differs (index)", diverged_kind: "Kind of that item", diverged_path: "Place in that item",
    diverged_class: "Kind of change", fingerprint: "Fingerprint", evidence: "Evidence",
  }],
  ["Tokens", {
    input_tokens: "Input (tokens)", cached_tokens: "Cached (tokens)", non_cached_tokens: "Non-cached (tokens)",
    cache_write_tokens: "Written to the cache (tokens)", cache_write_long_tokens: "Written for long (tokens)",
    output_tokens: "Output (tokens)", reasoning_tokens: "Reasoning (tokens)", total_tokens: "Total (tokens)", usage_state: "How usage is known",
  }],
  ["Time", {
    started_at: "Start (UTC)", ended_at: "End (UTC)", recorded_at: "Row written (UTC)", ttft_ms: "Time to first token (ms)", first_event_ms: "Time to first event (ms)",
    queue_ms: "Waited in queue (ms)", connect_ms: "Time to connect (ms)", duration_ms: "Duration (ms)",
  }],
  ["Whose it is", {
    session: "Session", session_key: "Session key", root_session: "Root session", turn_group: "Client's turn id", tenant: "Tenant",
    client: "Client", client_version: "Client version", client_transport: "Client transport", upstream: "Upstream", source: "Source",
  }],
  ["What was asked for", {
    kind: "Kind", model: "Model", reasoning_effort: "Reasoning effort", service_tier: "Service tier", store: "Stored by the provider",
    prompt_cache_key: "Prompt cache key",
  }],
  ["Chain", {
    chain: "Chain", epoch: "Epoch", epoch_turn: "Turn of the epoch", previous_response_id: "Previous response id", response_id: "Response id",
    tools_digest: "Digest of the tools", instructions_digest: "Digest of the instructions", prefix_digest: "Digest of what it continued",
    baseline_digest: "Digest of what it left",
  }],
  ["Outcome", {
    status: "Status", http_status: "HTTP status", error_code: "Error code", cache_verdict: "Cache verdict", cache_grade: "How sure that is",
    missed_tokens: "Missed (tokens)", provider_miss_reason: "Provider's word on the cache", shadow_mode: "Mode it would have had",
    shadow_reason: "Why, had it been continued", cost_usd: "Cost (US dollars, list price)", price_note: "Where the price is from",
  }],
  ["Record", { turn_id: "Turn id", gateway_version: "Warmline version", import_id: "Import" }],
];

const WORDS = /** @type {Record<string, string>} */ (Object.assign({}, ...GROUPS.map(([, columns]) => columns)));

/** What a column is called; its own name where it is newer than this list. @param {string} column */
export function wordsOf(column) {
  return WORDS[column] ?? column;
}
