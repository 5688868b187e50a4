// @ts-check
// Files that somebody chose or dropped, with the folders that they lay in.

/** @typedef {{name: string, file: File}} Picked */

/** Files of an input; those of a folder come with its name. @param {FileList} files @returns {Picked[]} */
export function fromInput(files) {
  return named([...files].map((file) => ({ name: file.webkitRelativePath || file.name, file })));
}

/**
 * Files of a drop, and all that lies in its folders. Call it while the event is handled.
 * @param {DataTransfer} data
 * @returns {Promise<Picked[]>}
 */
export async function fromDrop(data) {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (!entries.length) return fromInput(data.files); // what comes from another program may be no entry of a file system
  /** @type {Picked[]} */
  const found = [];
  for (const entry of entries) await walk(entry, found);
  return named(found);
}

/**
 * @param {FileSystemEntry} entry
 * @param {Picked[]} found
 */
async function walk(entry, found) {
  if (entry.isFile) {
    const at = /** @type {FileSystemFileEntry} */ (entry);
    /** @type {File} */
    const file = await new Promise((done, fail) => at.file(done, fail));
    found.push({ name: entry.fullPath.replace(/^\//, ""), file });
    return;
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!some.length) return; // a reader gives a hundred at a time
    for (const one of some) await walk(one, found);
  }
}

/**
 * What lies hidden in a folder is left out, as on the command line; two files of one name are told apart.
 * @param {Picked[]} picked
 */
function named(picked) {
  const names = new Set();
  return picked.filter(({ name }) => !name.split("/").slice(1).some((part) => part.startsWith("."))).map(({ name, file }) => {
    let free = name;
    for (let count = 2; names.has(free); count += 1) free = `${count}/${name}`;
    names.add(free);
    return { name: free, file };
  });
}
