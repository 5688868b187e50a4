// @ts-check
// A piece of settings or code that copies itself.

import { announce, copyText, fill, h, icon } from "./dom.js";

/**
 * @param {string} place where it goes
 * @param {string} text
 */
export function snippet(place, text) {
  const button = h("button", { type: "button", class: "button small", "aria-label": `Copy ${place}` }, icon("copy"), "Copy");
  button.addEventListener("click", async () => {
    const done = await copyText(text);
    fill(button, icon(done ? "check" : "copy"), done ? "Copied" : "Select and copy");
    announce(done ? "Copied." : "The browser did not allow copying.");
    setTimeout(() => fill(button, icon("copy"), "Copy"), 1500);
  });
  return h("figure", { class: "snippet" },
    h("figcaption", {}, h("span", {}, place), button),
    h("pre", { tabindex: 0, "aria-label": place, role: "group" }, h("code", {}, text)));
}

/**
 * A button that copies what it is told then.
 * @param {string} words
 * @param {() => string} text
 */
export function copyButton(words, text) {
  const label = h("span", {}, words);
  const button = h("button", { type: "button", class: "button small" }, icon("copy"), label);
  button.addEventListener("click", async () => {
    label.textContent = (await copyText(text())) ? "Copied" : "Copying was refused";
    announce(`${words}: ${label.textContent}`);
    setTimeout(() => (label.textContent = words), 1500);
  });
  return button;
}
