// @ts-check
// Sending files: one after another, each with its progress, until all are there or somebody calls it off.

import { ApiError, isAbort, send, upload } from "../api.js";
import { add, announce, fill, h, icon } from "../dom.js";
import { bytes, counted, integer } from "../format.js";

const SHOWN = 6;

/**
 * @param {HTMLElement} host where the progress is shown
 * @param {import("./picked.js").Picked[]} picked
 * @param {boolean} purged
 * @returns {Promise<string | null>} the import that was started; null where it was called off. Throws ApiError.
 */
export async function sendFiles(host, picked, purged) {
  const control = new AbortController();
  const view = progress(host, picked, () => control.abort());
  const { import: begun } = await send("POST", "/api/import", { purged });
  try {
    for (const [at, { name, file }] of picked.entries()) {
      control.signal.throwIfAborted();
      view.begins(at);
      const path = `/api/import/${begun.id}/files?${new URLSearchParams({ name })}`;
      await upload(path, file, (sent) => view.sent(at, sent), control.signal);
      view.sent(at, file.size);
    }
    control.signal.throwIfAborted();
    await send("POST", `/api/import/${begun.id}/start`);
    return begun.id;
  } catch (fault) {
    // waited for: whoever lists imports next must not find this one still being sent
    await send("DELETE", `/api/import/${begun.id}`).catch(() => undefined);
    if (!isAbort(fault)) throw fault;
    announce("Upload called off.");
    return null;
  } finally {
    host.hidden = true;
    fill(host);
  }
}

/** What cannot be sent, told before anything is. @param {import("./picked.js").Picked[]} picked @param {{bytes: number, files: number}} limits */
export function refuse(picked, limits) {
  const size = picked.reduce((sum, { file }) => sum + file.size, 0);
  if (!picked.length) throw new ApiError(0, "no_files", "There is no file in what you chose.", "Hidden files are left out.");
  if (picked.length > limits.files) throw new ApiError(0, "too_large", `These are ${integer(picked.length)} files.`, `An import has at most ${integer(limits.files)}: choose a part of the folder.`);
  if (size > limits.bytes) throw new ApiError(0, "too_large", `These files are ${bytes(size)}.`, `Uploads may take ${bytes(limits.bytes)} at a time (setting import_bytes). Compress them, send a part, or run warmline import beside them.`);
}

/**
 * @param {HTMLElement} host
 * @param {import("./picked.js").Picked[]} picked
 * @param {() => void} cancel
 */
function progress(host, picked, cancel) {
  const total = picked.reduce((sum, { file }) => sum + file.size, 0);
  const list = h("ul", { class: "uploads" });
  const words = h("p", { class: "muted" });
  const whole = h("progress", { max: Math.max(total, 1), value: 0, "aria-label": "All files" });
  /** @type {{row: HTMLElement, bar: HTMLProgressElement, told: HTMLElement}[]} */
  const rows = [];
  let before = 0;
  fill(host,
    h("div", { class: "sending-head" }, h("h3", {}, `Sending ${counted(picked.length, "file")}`), words,
      h("button", { type: "button", class: "button", click: cancel }, icon("close"), "Cancel")),
    whole, picked.length > 1 && list);
  host.hidden = false;
  announce(`Sending ${counted(picked.length, "file")}.`);
  return {
    /** @param {number} at */
    begins(at) {
      const { name, file } = picked[at];
      before = picked.slice(0, at).reduce((sum, one) => sum + one.file.size, 0);
      const told = h("span", { class: "muted" }, bytes(file.size));
      const bar = h("progress", { max: Math.max(file.size, 1), value: 0, "aria-label": name });
      const row = h("li", {}, h("span", { class: "clip", title: name }, name), bar, told);
      rows.push({ row, bar, told });
      add(list, row);
      if (rows.length > SHOWN) rows.shift()?.row.remove(); // the last ones are enough to see that it goes on
    },
    /** @param {number} at @param {number} sent */
    sent(at, sent) {
      const last = rows.at(-1);
      if (!last) return;
      const { size } = picked[at].file;
      last.bar.value = size ? Math.min(sent, size) : 1;
      if (sent >= size) fill(last.told, icon("check"), bytes(size));
      whole.value = total ? Math.min(before + sent, total) : 1;
      words.textContent = `${bytes(Math.min(before + sent, total))} of ${bytes(total)}, ${integer(at + 1)} of ${integer(picked.length)}`;
    },
  };
}
