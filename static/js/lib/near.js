// @ts-check
// The end of a list comes near: time to fetch on.

/**
 * @param {Element} element what stands at the end
 * @param {number} margin pixels from what is in sight
 * @param {() => void} act
 * @returns {(root?: Element | null) => void} begins to look, and looks anew after the list has grown: an observer says
 *   nothing of an element that was near and still is. `root` is what scrolls, if not the page.
 */
export function whenNear(element, margin, act) {
  /** @type {IntersectionObserver | undefined} */
  let observer;
  return (root = null) => {
    observer?.disconnect();
    observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && act(), { root, rootMargin: `${margin}px 0px` });
    observer.observe(element);
  };
}
