// @ts-check
// What the browser remembers for this viewer. Storage that is blocked costs only the memory.

/** @param {string} key @returns {string | null} */
export function stored(key) {
  try {
    return localStorage.getItem(`warmline.${key}`);
  } catch {
    return null;
  }
}

/**
 * @param {string} key
 * @param {string | null} value null forgets it
 * @returns {boolean} whether it will be there next time
 */
export function store(key, value) {
  try {
    if (value === null) localStorage.removeItem(`warmline.${key}`);
    else localStorage.setItem(`warmline.${key}`, value);
    return true;
  } catch {
    return false;
  }
}
