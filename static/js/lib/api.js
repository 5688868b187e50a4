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
   * @param {string | null} [request] the id that the server's log names
   */
  constructor(status, code, message, hint, field = null, request = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.field = field;
    this.request = request;
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
 * @param {"POST" | "PUT" | "PATCH" | "DELETE"} method
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
    throw unreachable();
  }
  if (answer.status === 204) return null;
  return read(answer.status, await answer.json().catch(() => null), answer.headers.get("x-request-id"));
}

function unreachable() {
  return new ApiError(0, "unreachable", "Warmline did not answer.", "Is it still running? What you see is the last that it told.");
}

/**
 * What an answer says.
 * @param {number} status 0 where there was none
 * @param {any} body null where it is no JSON
 * @param {string | null} [request]
 */
function read(status, body, request = null) {
  if (status === 0) throw unreachable();
  if (status === 401) {
    location.assign(url("/login", new URLSearchParams({ next: location.pathname + location.search })));
    throw new ApiError(401, "unauthorized", "You are logged out.", null);
  }
  if (status >= 200 && status < 300 && body !== null) return body;
  const error = body?.error ?? {};
  throw new ApiError(
    status,
    error.code ?? "unreadable",
    error.message ?? `Warmline answered with status ${status}.`,
    error.hint ?? null,
    error.field ?? null,
    request,
  );
}

/**
 * PUT a file as it is; fetch would not say how far it is. Throws ApiError, or the signal's AbortError.
 * @param {string} path
 * @param {Blob} file
 * @param {(sent: number) => void} progress bytes
 * @param {AbortSignal} signal
 * @returns {Promise<any>}
 */
export function upload(path, file, progress, signal) {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    signal.addEventListener("abort", stop);
    request.upload.addEventListener("progress", (event) => progress(event.loaded));
    request.addEventListener("loadend", () => {
      signal.removeEventListener("abort", stop);
      if (signal.aborted) return fail(signal.reason);
      try {
        done(read(request.status, parsed(request.responseText)));
      } catch (fault) {
        fail(fault);
      }
    });
    request.open("PUT", path);
    request.setRequestHeader("content-type", "application/octet-stream");
    request.setRequestHeader("x-warmline-upload", "1");
    request.send(file);
  });
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
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
