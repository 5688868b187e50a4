// @ts-check
// The only file that fetches.

/** What went wrong, in the API's own words. */
export class ApiError extends Error {
  /**
   * @param {number} status 0 when there was no answer at all
   * @param {string} code
   * @param {string} message
   * @param {string | null} hint
   * @param {string | null} [field] the part of what was sent that is at fault
   */
  constructor(status, code, message, hint, field = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.field = field;
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
  return ask(url(path, query), { signal });
}

/**
 * Change something. Throws ApiError; its `field` names what was wrong.
 * @param {"POST" | "PUT" | "DELETE"} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function send(method, path, body = {}, signal) {
  return ask(path, { method, signal, body: JSON.stringify(body) });
}

/**
 * @param {string} address
 * @param {RequestInit} options
 */
async function ask(address, options) {
  /** @type {Record<string, string>} */
  const headers = { accept: "application/json" };
  if (options.body) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(address, { ...options, headers, credentials: "same-origin" });
  } catch (fault) {
    if (options.signal?.aborted) throw fault;
    throw new ApiError(0, "unreachable", "Warmline did not answer.", "Is it still running? What you see is the last that it told.");
  }
  if (answer.status === 401) {
    location.assign(url("/login", new URLSearchParams({ next: location.pathname + location.search })));
    throw new ApiError(401, "unauthorized", "You are logged out.", null);
  }
  if (answer.status === 204) return null;
  const body = await answer.json().catch(() => null);
  if (answer.ok && body !== null) return body;
  const error = body?.error ?? {};
  throw new ApiError(
    answer.status,
    error.code ?? "unreadable",
    error.message ?? `Warmline answered with status ${answer.status}.`,
    error.hint ?? null,
    error.field ?? null,
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
