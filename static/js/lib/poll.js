// @ts-check
// Asking again every few seconds, while somebody looks.

/**
 * Run something now and again, never twice at a time, and not while the page is hidden.
 * @param {() => Promise<void>} work
 * @param {number} pause milliseconds between the end of one run and the next
 * @returns {() => Promise<void>} run it at once; what is on its way is waited for first
 */
export function every(work, pause) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {Promise<void>} */
  let running = Promise.resolve();
  const run = () => {
    clearTimeout(timer);
    running = running.then(work).catch(() => undefined).then(() => {
      clearTimeout(timer);
      if (!document.hidden) timer = setTimeout(run, pause);
    });
    return running;
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) clearTimeout(timer);
    else void run();
  });
  return run;
}
