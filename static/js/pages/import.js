// @ts-check
// Import: files are sent, imported, listed, and taken back.

import { get, send } from "../lib/api.js";
import { confirmed } from "../lib/dialog.js";
import { announce, byId } from "../lib/dom.js";
import { bytes, counted } from "../lib/format.js";
import { busy, importList, stateWord, undoWord } from "../lib/imports/list.js";
import { fromDrop, fromInput } from "../lib/imports/picked.js";
import { refuse, sendFiles } from "../lib/imports/send.js";
import { redraw } from "../lib/keyed.js";
import { every } from "../lib/poll.js";
import { sections } from "../lib/sections.js";
import * as shell from "../lib/shell.js";

const PAUSE = 1000;
const main = byId("main");
const drop = byId("drop");
const { section, forget } = sections();
let limits = { bytes: Infinity, files: Infinity };
let sending = false;
let last = ""; // what was shown last, so that only what changed is said
/** What is known of the imports that are open. @type {Map<string, any>} */
const details = new Map();
/** @type {Map<string, string>} */
const states = new Map();

async function load() {
  try {
    const told = await get("/api/import");
    limits = told.limits;
    byId("limit").textContent = `up to ${bytes(limits.bytes)} at a time`;
    byId("formats").textContent = told.formats.map((/** @type {any} */ one) => `${one.title} (${one.name})`).join(", ");
    for (const one of told.imports) {
      const before = states.get(one.id);
      if (before && before !== one.state && !busy(one)) announce(`${stateWord(one)}: ${counted(one.rows.new, "new row")}.`);
      states.set(one.id, one.state);
      if (details.has(one.id) && (busy(one) || before !== one.state || !details.get(one.id))) await detail(one.id);
    }
    const shown = JSON.stringify([told.imports, [...details]]);
    if (shown !== last) {
      last = shown;
      section("imports", shown, (host) => redraw(host, importList(told.imports, details, { open, undo })));
      for (const id of details.keys()) unfold(id);
    }
    if (!faulty) shell.showFault(null);
  } catch (fault) {
    shell.showFault(fault);
  }
  main.setAttribute("aria-busy", "false");
}

let faulty = false; // an error of somebody's own doing stays until the next try

/** @param {string} id */
async function detail(id) {
  details.set(id, (await get(`/api/import/${id}`)).import);
}

/** @param {string} id */
function unfold(id) {
  const fold = document.querySelector(`details[data-key="import-${id}"]`);
  if (fold instanceof HTMLDetailsElement) fold.open = true;
}

/** @param {string} id @param {boolean} open */
function open(id, open) {
  if (open === details.has(id)) return;
  if (open) details.set(id, null);
  else details.delete(id);
  void refresh();
}

/** @param {any} one */
async function undo(one) {
  const word = undoWord(one);
  const what = one.state === "uploading" ? "The files that were sent are deleted." : `${counted(one.rows.new, "row")} and their part in every sum are taken away. The files can be imported again.`;
  if (!(await confirmed(one.state === "uploading" ? "Throw away what was sent?" : `${word} ${one.names ? `the import of ${one.names}` : "this import"}?`, what, word))) return;
  await attempt(async () => {
    await send("DELETE", `/api/import/${one.id}`);
  });
}

/** @param {Promise<import("../lib/imports/picked.js").Picked[]> | import("../lib/imports/picked.js").Picked[]} choice */
async function take(choice) {
  if (sending) return announce("Files are being sent already.");
  sending = true;
  drop.inert = true;
  await attempt(async () => {
    try {
      const picked = await choice;
      refuse(picked, limits);
      const id = await sendFiles(byId("sending"), picked, byId("purged", HTMLInputElement).checked);
      if (id) details.set(id, null);
    } finally {
      // before the list is asked for anew: whoever reads of a refusal can choose again at once
      sending = false;
      drop.inert = false;
    }
  });
}

/** @param {() => Promise<void>} work */
async function attempt(work) {
  faulty = false;
  try {
    await work();
    shell.showFault(null);
  } catch (fault) {
    faulty = true;
    shell.showFault(fault);
  }
  await refresh();
}

const refresh = every(load, PAUSE);

for (const id of ["files", "folder"]) {
  const input = byId(id, HTMLInputElement);
  input.addEventListener("change", () => {
    const picked = fromInput(input.files ?? new DataTransfer().files);
    input.value = ""; // the same file can be chosen again
    if (picked.length) void take(picked);
  });
}
for (const name of ["dragenter", "dragover"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault(); // the browser would open the file
    drop.classList.toggle("over", event.target instanceof Node && drop.contains(event.target));
  });
}
document.addEventListener("dragleave", (event) => event.relatedTarget === null && drop.classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  if (event.dataTransfer?.types.includes("Files")) void take(fromDrop(event.dataTransfer));
});
addEventListener("beforeunload", (event) => sending && event.preventDefault());

shell.wireBar(() => void refresh());
shell.wireZone(() => {
  last = "";
  forget();
  void refresh();
});
document.querySelector("#fault [data-refresh]")?.addEventListener("click", () => {
  faulty = false;
  void refresh();
});
void refresh();
