// Runs before the first paint, as a classic script, so that a remembered theme never flashes.
// Storage may be blocked; then the system's choice holds.
(function () {
  "use strict";
  document.documentElement.classList.add("scripted"); // what needs script shows only with it
  try {
    var theme = window.localStorage.getItem("warmline.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch (blocked) {
    /* the system's choice holds */
  }
})();
