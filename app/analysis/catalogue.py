"""The catalogue of causes: for each kind of evidence its usual cause and its usual remedy.

Page, message and report say the same (``app.analysis.explain``); which entry tells of a row is in
``app.analysis.lookup``. A cause is the usual one, worded so that it can be checked; what is proven
stands in the sentence and in the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.model import Reason

_SUMMARIZE = "`x-warmline-epoch-reset: summarize`"


@dataclass(frozen=True, slots=True)
class Advice:
    cause: str
    remedy: str


HISTORY: dict[str, Advice] = {
    "rewound": Advice(
        "The client went back to an earlier point of the conversation, or repeats a request.",
        "None is needed if that was meant: a branch begins here, and the next turns continue it.",
    ),
    "window": Advice(
        "The client drops its oldest items to stay within a size, so that each request begins "
        "elsewhere.",
        "Drop a large block seldom instead of a little each turn, or summarize and announce it "
        f"with the header {_SUMMARIZE}.",
    ),
    "summarized_history": Advice(
        "Older items were condensed into a summary.",
        f"Summarize seldom and in large steps, and announce it with the header {_SUMMARIZE}, so "
        "that it counts as planned.",
    ),
    "branched": Advice(
        "The conversation was taken back and goes on in another way, or a second conversation "
        "runs under the same history.",
        "None is needed if that was meant: a branch begins here, and the next turns continue it. "
        "Else give each conversation a session of its own.",
    ),
    "replaced_item": Advice(
        "The client put another item in the place of one that was already sent.",
        "Append what is new at the end, and leave what was sent as it is.",
    ),
    "outputs_reordered": Advice(
        "Outputs of parallel tool calls are sent as they finish, and later in the order of "
        "their calls.",
        "Keep the order in which the items were first sent.",
    ),
    "items_reordered": Advice(
        "The client sorts or regroups its history.",
        "Keep the order in which the items were first sent and answered.",
    ),
    "reasoning_dropped": Advice(
        "The client leaves reasoning items out of its history.",
        "Give back every reasoning item as it was answered, with its id and its "
        '`encrypted_content` (`include: ["reasoning.encrypted_content"]`).',
    ),
    "answer_dropped": Advice(
        "The client leaves out a message of the model: an empty one, a refusal, a commentary, or "
        "the answer that it saw end.",
        "Give back every output item, also those that are not shown to anybody.",
    ),
    "note_dropped": Advice(
        "A note that belongs to the newest turn only (environment, reminder) is taken out of the "
        "older ones.",
        "Leave it where it was sent, and append a new one when it changes.",
    ),
    "tool_items_dropped": Advice(
        "The client prunes old tool calls or their outputs.",
        f"Prune seldom and in large steps, and announce it with the header {_SUMMARIZE}.",
    ),
    "block_dropped": Advice(
        "The client trims the middle of its history to save room.",
        f"Trim seldom and in large steps, and announce it with the header {_SUMMARIZE}.",
    ),
    "item_dropped": Advice(
        "The client leaves an item out of its history that was sent or answered before.",
        "Give back every item, also of kinds that the client does not know.",
    ),
    "note_inserted": Advice(
        "The client puts a note (environment, reminder, retrieved text) among older items.",
        "Append it after all that was sent before.",
    ),
    "output_inserted": Advice(
        "A tool's output came late and was stored beside its call instead of at the end.",
        "Send items in the order in which they came to be, and keep that order.",
    ),
    "item_inserted": Advice(
        "The client puts an item among older ones.",
        "Append what is new after all that was sent and answered before.",
    ),
    "metadata_moved": Advice(
        "Metadata moves to the newest result, and the older ones lose or change theirs.",
        "Keep it out of what the model reads, or name the key in the upstream's setting `freeze`: "
        "old results then count as the model saw them. The embedded engine does so by itself.",
    ),
    "ids_remade": Advice(
        "The client makes up ids anew instead of keeping those that were answered.",
        "Keep each id as it came, or leave ids out altogether.",
    ),
    "ciphertext_lost": Advice(
        "A reasoning or compaction item came back without its `encrypted_content`, or with "
        "another.",
        'Ask for it (`include: ["reasoning.encrypted_content"]`) and give it back unchanged.',
    ),
    "field_dropped": Advice(
        "The client does not know a field of what the model made, and leaves it out.",
        "Give back each item with all its fields, or use a version of the client that knows them.",
    ),
    "tool_definitions": Advice(
        "The list of tools in the history changed.",
        "Fix the tools and their order when the session begins.",
    ),
    "first_message_volatile": Advice(
        "The first message holds a time, a counter or an id that is made anew on every request.",
        "Write it once when the session begins, or put it into the newest message.",
    ),
    "first_message": Advice(
        "The first message is built anew on every request (environment, files, date, summary).",
        "Build it once when the session begins, and say what changed in the newest message.",
    ),
    "instruction_volatile": Advice(
        "The instructions hold a time, a counter or an id that is made anew on every request.",
        "Take it out, write it once when the session begins, or put it into the newest message.",
    ),
    "instruction": Advice(
        "The instructions are built anew on every request, from something that changes.",
        "Build them once when the session begins, and append what changes as a new message.",
    ),
    "output_shortened": Advice(
        "The output of an old tool call was cut or summarized to save room, or lost a note that "
        "moves to the newest one.",
        "Cut an output before it is first sent, and leave it then; or summarize in large steps and "
        f"announce it with the header {_SUMMARIZE}.",
    ),
    "output_volatile": Advice(
        "The output of an old tool call holds a time, a counter or an id that is made anew.",
        "Keep the output as a string when the tool has run, and never make it again.",
    ),
    "output_respelled": Advice(
        "The output of an old tool call is serialized anew on every request.",
        "Serialize it once when the tool has run, and keep the string.",
    ),
    "output_changed": Advice(
        "The output of an old tool call was changed after the model had seen it.",
        "Keep the output as a string when the tool has run; append what is new as a new item.",
    ),
    "arguments_reordered": Advice(
        "A list in the arguments of an old call came back in another order.",
        "Give the arguments back as the string that was answered.",
    ),
    "call_changed": Advice(
        "The client changed an old call: it repairs, completes or redacts what the model wrote.",
        "Give back the call as it was answered, and change only what is run.",
    ),
    "text_trimmed": Advice(
        "The client trims or reflows text that was already sent or answered.",
        "Store texts as they came; trim only what is shown.",
    ),
    "unicode_normalized": Advice(
        "A store or a filter of the client normalizes Unicode.",
        "Store texts byte for byte.",
    ),
    "answer_edited": Advice(
        "The client edits what the model said (markup, citations, redaction).",
        "Give back the model's text as it came; edit only what is shown.",
    ),
    "message_volatile": Advice(
        "An old message holds a time, a counter or an id that is made anew on every request.",
        "Write it once when the message is made, and keep the message.",
    ),
    "message_edited": Advice(
        "An old message was edited, or the context in it is kept up to date.",
        "Leave old messages as they were sent; append what is new.",
    ),
    "item_changed": Advice(
        "The client changed an item that was already sent or answered.",
        "Give back every item as it came.",
    ),
}
"""Why a history parted, by the kind of evidence."""

FIELDS: dict[str, Advice] = {
    "tools_reordered": Advice(
        "The list of tools comes from a map or a set, or from servers that answer in any order.",
        "Sort the tools by name before they are sent.",
    ),
    "tools_set": Advice(
        "The set of tools depends on the turn: servers come and go, or tools are chosen by turn.",
        "Send one fixed list through the session, and restrict it with `tool_choice` "
        "(`allowed_tools`).",
    ),
    "tool_volatile": Advice(
        "A tool's definition holds a time, a counter or an id that is made anew.",
        "Take it out of the definition, and put it into the newest message.",
    ),
    "tool_changed": Advice(
        "A tool's definition is made anew on every request, from something that changes.",
        "Build the definitions once when the session begins; put what changes into the newest "
        "message.",
    ),
    "instructions_volatile": HISTORY["instruction_volatile"],
    "instructions_trimmed": Advice(
        "The instructions are put together with other white space on each request.",
        "Build them once when the session begins, and keep the string.",
    ),
    "instructions": HISTORY["instruction"],
    "model": Advice(
        "The session goes on with another model.",
        "None is needed if that was meant. Where a router chose it, let it choose per session: "
        "each model has to read the whole history anew.",
    ),
    "reasoning": Advice(
        "The reasoning settings are chosen per turn.",
        "Keep one effort and one form of summary through a session.",
    ),
    "prompt_cache_key": Advice(
        "The cache key is made anew, or names the request instead of the session.",
        "Use one stable key per session.",
    ),
    "text": Advice(
        "The format of the answer is chosen per turn.",
        "Keep one format through a session, or ask for the other in a session of its own.",
    ),
    "tool_choice": Advice(
        "The choice of tools is forced on some turns only.",
        "Keep `tool_choice` as it is through a session where the client allows it.",
    ),
    "identity": Advice(
        "The id of the user is not the same on every request of the session.",
        "Send one stable id per session.",
    ),
    "several": Advice(
        "Several settings changed at once: usually a request of another kind (a summary, a title, "
        "a sub-agent) that echoes the same history.",
        "None is needed if that was meant: the conversation itself goes on from its last answer.",
    ),
    "field": Advice(
        "A setting of the request is not the same on every request of the session.",
        "Set it once when the session begins.",
    ),
}
"""Why fields changed."""
CHANGES = HISTORY | FIELDS
"""Why what was sent before came back changed, by a name that is in one of the two only."""

REASONS: dict[str, Advice] = {
    Reason.PAYLOAD_TOO_LARGE: Advice(
        "The whole history was sent in one message, and it is larger than the upstream takes.",
        "Images and large outputs are what weighs: send them once, or by reference.",
    ),
    Reason.WS_REJECTED: Advice(
        "The upstream, or a proxy before it, does not offer WebSocket mode at this address.",
        "Check the address and what the proxy lets through; for an upstream that keeps responses, "
        'set `continuation = "store"`.',
    ),
    Reason.WS_UNAVAILABLE: Advice(
        "Connections to the upstream failed or were all in use.",
        "Check the network to the upstream, and the bounds of its connections.",
    ),
    Reason.STORE_UNSUPPORTED: Advice(
        "The client asks not to store the response, or the upstream keeps none.",
        "Let the client store where that is wanted; for an upstream that keeps none, set "
        '`continuation = "websocket"` or `"off"`.',
    ),
    Reason.EMPTY_DELTA: Advice(
        "The client repeats a request that was already answered.",
        "Let a retry of the client begin only where no answer came.",
    ),
    Reason.MISSING_RESPONSE_ID: Advice(
        "The upstream's answers carry no id.",
        'Set `continuation = "off"` for it, if that is always so.',
    ),
    Reason.MISSING_OUTPUT_ITEMS: Advice(
        "The upstream, or a proxy before it, drops events of the stream.",
        "Look whether the same happens without the proxy.",
    ),
    Reason.OUTPUT_CONFLICT: Advice(
        "The upstream's events and its final answer name different items, or the agent recorded "
        "others than it was answered.",
        "Look at the upstream's events; an embedded agent records exactly what it was answered.",
    ),
    Reason.CHAIN_BUSY: Advice(
        "Several requests of one history run at the same time.",
        "None is needed if that was meant: one connection answers one request at a time.",
    ),
    Reason.PREVIOUS_RESPONSE_NOT_FOUND: Advice(
        "The provider had dropped the response, though its connection was still open.",
        "None is needed if it is rare; the turn was sent again in full.",
    ),
    Reason.INTERNAL_ERROR: Advice(
        "A fault of Warmline's; the request itself was let through unchanged.",
        "The log has its place; please report it.",
    ),
}
"""Why a turn went in full for a reason that needs no evidence."""

LOST: dict[str, Advice] = {
    "closed": Advice(
        "The provider or the network closed an idle connection.",
        "None is needed if it is rare; a proxy between may have an idle limit that can be raised.",
    ),
    "limit_reached": Advice(
        "A connection ends after the provider's limit of its age.",
        "None is needed: it happens once per connection.",
    ),
    "evicted": Advice(
        "More conversations were kept than there is room for.",
        "Raise the bounds of sessions and connections, if memory allows.",
    ),
    "superseded": Advice(
        "The turn goes on from an older answer than the last one: a branch, or a repeated turn.",
        "None is needed if that was meant: the branch has a connection of its own from now on.",
    ),
    "client_anchored": Advice(
        "The client named a response itself, and the answer did not show that it was continued.",
        "None is needed: from this turn on the history is known again.",
    ),
    "http": Advice(
        "The turn before it had to go over HTTP, which holds no conversation.",
        "See why that turn did.",
    ),
    "diagnostics_refused": Advice(
        "The setting `diagnostics` asks for something that this upstream or model does not know.",
        "None is needed: the model is not asked again until the restart. Else set `diagnostics` "
        "to false.",
    ),
    "handshake_changed": Advice(
        "The client sends other headers (credential, account, beta flags) than before.",
        "None is needed if that was meant; else keep the headers through a session.",
    ),
}
"""Why a connection was lost, where more can be said than that it was."""
AFTER_A_FAULT = Advice(
    "After a turn that did not end well nobody can tell what its connection holds.",
    "See why the turn before it ended so.",
)
