// @ts-check
// The only file that fetches.

/** What went wrong, in the API's own words. */
export class ApiError extends Error {
  /**
   * @param {number} status 0 when there was no answer at all
   * @param {string} code
   * @param {string} message
   * @param {string | null} hint
   */
  constructor(status, code, message, hint) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

/**
 * @param {string} path
 * @param {URLSearchParams} [query]
 */
export function url(path, query) {
  const text = query?.toString();
  return text ? `${path}?${text}` : path;
}

/**
 * GET some JSON. Throws ApiError, or the signal's AbortError when a newer request has made this one stale.
 * @param {string} path
 * @param {URLSearchParams} [query]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function get(path, query, signal) {
  let answer;
  try {
    answer = await fetch(url(path, query), { signal, headers: { accept: "application/json" }, credentials: "same-origin" });
  } catch (fault) {
    if (signal?.aborted) throw fault;
    throw new ApiError(0, "unreachable", "Warmline did not answer.", "Is it still running? What you see is the last that it told.");
  }
  if (answer.status === 401) {
    location.assign(url("/login", new URLSearchParams({ next: location.pathname + location.search })));
    throw new ApiError(401, "unauthorized", "You are logged out.", null);
  }
  const body = await answer.json().catch(() => null);
  if (answer.ok && body !== null) return body;
  const error = body?.error ?? {};
  throw new ApiError(
    answer.status,
    error.code ?? "unreadable",
    error.message ?? `Warmline answered with status ${answer.status}.`,
    error.hint ?? null,
  );
}

/** End the session of the login form. */
export async function logout() {
  await fetch("/logout", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  location.assign("/login");
}

/** Whether the view itself is at fault, so that asking again is of no use. @param {unknown} fault */
export function refused(fault) {
  return fault instanceof ApiError && fault.status === 400;
}

/** @param {unknown} fault */
export function isAbort(fault) {
  return fault instanceof DOMException && fault.name === "AbortError";
}
