// @ts-check
// What a page shows first is asked for as soon as this file is there, while the page's other modules still come in.

import { get, url } from "./api.js";
import { apiQuery, read } from "./filters.js";
import { linkZone } from "./time.js";

/** @type {Map<string, Promise<any>>} address: its answer, until somebody takes it */
const asked = new Map();

const path = document.documentElement.dataset.first;
if (path) {
  linkZone(new URLSearchParams(location.search).get("tz"));
  const query = apiQuery(read(location.search));
  const answer = get(path, query);
  answer.catch(() => undefined); // told to whoever takes it
  asked.set(url(path, query), answer);
}

/**
 * GET some JSON like `get`, from what was asked for early where it is just that.
 * @param {string} path
 * @param {URLSearchParams} query
 * @param {AbortSignal} signal
 * @returns {Promise<any>}
 */
export async function first(path, query, signal) {
  const early = asked.get(url(path, query));
  asked.clear();
  if (!early) return get(path, query, signal);
  const answer = await early;
  signal.throwIfAborted();
  return answer;
}
