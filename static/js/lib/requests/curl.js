// @ts-check
// What a page shows, as a command that asks the API for the same.

import { url } from "../api.js";

/**
 * @param {string} path
 * @param {URLSearchParams} [query]
 */
export function curl(path, query) {
  // an address never holds a quote that is not escaped; the token itself is never put anywhere
  const token = document.getElementById("logout") ? ` -H "Authorization: Bearer $WARMLINE_TOKEN"` : "";
  return `curl -s${token} '${(location.origin + url(path, query)).replaceAll("'", "%27")}'`;
}
