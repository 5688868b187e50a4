// @ts-check
// The panel at the side, and the question before something that cannot be taken back. The focus goes into what
// opens and returns to where it was, even if that was drawn anew meanwhile.

import { byId, fill } from "./dom.js";
import { focusKey } from "./keyed.js";

/** @type {string} */
let opener = "";
/** @type {(() => void) | null} */
let onClosed = null;
let touched = false; // something was typed that closing would lose
/** @type {(() => void) | null} */
let answer = null; // tells what the open question was answered

const panel = () => byId("panel", HTMLDialogElement);

/**
 * @param {string} title
 * @param {import("./dom.js").Child[]} content
 * @param {{kind?: string, closed?: () => void}} [more] `kind` is a class of the panel; `closed` is called once
 */
export function openPanel(title, content, { kind = "", closed } = {}) {
  const dialog = panel();
  if (!dialog.open) opener = focusedKey();
  onClosed?.();
  onClosed = closed ?? null;
  touched = false;
  dialog.className = `detail panel ${kind}`.trim();
  byId("panel-title").textContent = title;
  fill(byId("panel-body"), ...content);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  byId("panel-title").focus({ preventScroll: true });
}

export function closePanel() {
  panel().close();
}

/** Close it on somebody's wish; what was typed is not thrown away unasked. */
export async function leavePanel() {
  if (touched && !(await confirmed("Throw away what you typed?", "It is not saved.", "Throw away"))) return;
  closePanel();
}

/** The panel's key and the element of the page that opened it. */
export function wirePanel() {
  const dialog = panel();
  byId("panel-close").addEventListener("click", () => void leavePanel());
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    void leavePanel();
  });
  dialog.addEventListener("input", (event) => {
    if (!(event.target instanceof Element && event.target.closest(".preview"))) touched = true;
  });
  // a press on the ground beside it closes it, but not one that began inside, such as a selection of text
  let outside = false;
  dialog.addEventListener("pointerdown", (event) => (outside = event.target === dialog));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog && outside) void leavePanel();
  });
  dialog.addEventListener("close", () => {
    onClosed?.();
    onClosed = null;
    fill(byId("panel-body")); // a secret that was typed or made is not kept
    if (opener) focusKey(opener);
  });
}

/**
 * Ask before something is done. Escape and "Cancel" mean no.
 * @param {string} question
 * @param {string} consequence
 * @param {string} yes the word on the button
 * @returns {Promise<boolean>}
 */
export function confirmed(question, consequence, yes) {
  const dialog = byId("confirm", HTMLDialogElement);
  answer?.(); // a browser tells only later that a dialog was closed
  const before = focusedKey();
  byId("confirm-title").textContent = question;
  byId("confirm-text").textContent = consequence;
  byId("confirm-yes").textContent = yes;
  dialog.returnValue = "";
  dialog.showModal();
  byId("confirm-no").focus();
  dialog.onclose = () => {
    if (!dialog.open) answer?.();
  };
  return new Promise((done) => {
    answer = () => {
      answer = null;
      if (before) focusKey(before);
      done(dialog.returnValue === "yes");
    };
  });
}

function focusedKey() {
  return document.activeElement instanceof HTMLElement ? (document.activeElement.dataset.key ?? "") : "";
}
