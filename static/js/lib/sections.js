// @ts-check
// Sections of a page that are drawn from data which is fetched again and again.

import { byId } from "./dom.js";
import { selecting } from "./keyed.js";

/**
 * `section` draws one, unless it shows just this already or somebody selects text in it; after
 * `forget` all are drawn again.
 * @returns {{section: (id: string, data: unknown, draw: (host: HTMLElement) => void) => void, forget: () => void}}
 */
export function sections() {
  /** What each section shows. @type {Map<string, string>} */
  const shown = new Map();
  return {
    section(id, data, draw) {
      const text = JSON.stringify(data);
      const host = byId(id);
      if (shown.get(id) === text || selecting(host)) return;
      shown.set(id, text);
      draw(host);
    },
    forget: () => shown.clear(),
  };
}
