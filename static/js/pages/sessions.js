// @ts-check
// The list of sessions: strips, figures, sub-agents under their roots, and new turns that do not move what is read.

import { get, isAbort, refused } from "../lib/api.js";
import { all, announce, byId, fill, icon } from "../lib/dom.js";
import { showEmpty } from "../lib/empty.js";
import { apiQuery, changed, filterQuery, inRange, literal, pageQuery } from "../lib/filters.js";
import { counted, integer } from "../lib/format.js";
import { redraw, selecting } from "../lib/keyed.js";
import { coalesced, Live } from "../lib/live.js";
import { whenNear } from "../lib/near.js";
import { sessionRow } from "../lib/sessions/list.js";
import { legend } from "../lib/sessions/strip.js";
import * as shell from "../lib/shell.js";
import { Toolbar } from "../lib/toolbar.js";
import { walkByKeys } from "../lib/walk.js";

const PAGE = 25;
const MEMBERS = 100;
const main = byId("main");
const body = byId("rows");
const sort = byId("sort", HTMLSelectElement);
let current = new AbortController();
/** @type {string | null} */
let shown = null; // the view that the page shows, so that new data of the same view does not blink
/** @type {{rows: any[], cursor: string | null, range: any, count: number, whole: number, idle: number} | null} */
let list = null;
/** Sub-agents that are open, by the key of their root. @type {Map<string, any[]>} */
const open = new Map();
let waiting = new Set();
let extending = false;
const lookForEnd = whenNear(byId("more"), 400, () => void extend());

const toolbar = new Toolbar(() => void load());
const order = () => toolbar.view.own?.sort ?? "recent";

/** @param {import("../lib/filters.js").View} view @param {number} limit */
function query(view, limit) {
  const made = apiQuery(view);
  made.set("sort", order());
  made.set("limit", String(limit));
  return made;
}

async function load() {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  const { view } = toolbar;
  const key = `${pageQuery(view)} ${order()}`;
  shell.keepView(view);
  live.listen(filterQuery(view));
  sort.value = order();
  if (key !== shown) {
    main.setAttribute("aria-busy", "true");
    open.clear();
  }
  try {
    // as many as are shown already, so that nothing that is read goes away
    const least = key === shown ? Math.min(500, Math.max(PAGE, list?.rows.length ?? 0)) : PAGE;
    const page = await get("/api/sessions", query(view, least), signal);
    await Promise.all([...open.keys()].map(async (root) => open.set(root, await membersOf(root, signal))));
    list = { rows: page.sessions, cursor: page.next_cursor, range: page.range, count: page.count, whole: page.sessions_in_view, idle: page.idle };
    waiting = new Set();
    toolbar.resolved(page.range);
    for (const row of page.sessions) if (row.session) toolbar.learn(row.session_key, row.session);
    const holdsNone = page.count === 0 && (await get("/api/summary", undefined, signal)).ledger.empty;
    byId("board").hidden = showEmpty(holdsNone, page.count, toolbar);
    draw();
    shell.showFault(null);
    shell.justUpdated();
    shown = key;
    lookForEnd();
  } catch (fault) {
    if (isAbort(fault) || signal.aborted) return;
    shell.showFault(fault);
    if (refused(fault)) live.rest();
    if (!list) byId("board").hidden = true;
  }
  main.setAttribute("aria-busy", "false");
}

/** @param {string} root its key @param {AbortSignal} [signal] */
async function membersOf(root, signal) {
  const row = list?.rows.find((one) => one.session_key === root);
  if (!row) return [];
  const view = changed(toolbar.view, { root: [literal(row.root)], tenant: [row.tenant] });
  return (await get("/api/sessions", query({ ...view, ...(list?.range ?? {}) }, MEMBERS), signal)).sessions;
}

async function extend() {
  if (extending || !list?.cursor) return;
  extending = true;
  const { signal } = current;
  try {
    const wanted = query({ ...toolbar.view, from: list.range.from, to: list.range.to }, PAGE);
    wanted.set("cursor", list.cursor);
    const page = await get("/api/sessions", wanted, signal);
    const known = new Set(list.rows.map((row) => row.session_key));
    list.rows.push(...page.sessions.filter((/** @type {any} */ row) => !known.has(row.session_key)));
    list.cursor = page.next_cursor;
    draw();
    lookForEnd();
  } catch (fault) {
    if (!isAbort(fault)) shell.showFault(fault);
  }
  extending = false;
}

function draw() {
  if (!list) return;
  const { view } = toolbar;
  redraw(body, ...list.rows.flatMap((row) => [
    sessionRow(row, view, null, open.has(row.session_key)),
    ...(open.get(row.session_key) ?? []).map((one) => sessionRow(one, view, row.session_key, false)),
  ]));
  const agents = list.whole + list.idle - list.count;
  byId("list-count").textContent = [
    `${integer(list.rows.length)} of ${counted(list.count, "session")} shown`,
    agents > 0 && `with ${counted(agents, "sub-agent")}`,
    list.idle > 0 && `${integer(list.idle)} without a turn in this range`,
  ].filter(Boolean).join(", ");
  byId("more-words").textContent = list.cursor || !list.count ? "" : "That is all of this view.";
  byId("load-more").hidden = !list.cursor;
  showWaiting();
}

function showWaiting() {
  byId("new-rows").hidden = !waiting.size;
  if (waiting.size) fill(byId("show-new"), icon("arrow-up"), counted(waiting.size, "new turn"));
}

/** Whether drawing anew would move what somebody reads. */
function reading() {
  return scrollY > 40 || body.contains(document.activeElement) || body.matches(":hover") || selecting(body) || !byId("facets").hidden;
}

const settle = coalesced(async () => {
  if (!waiting.size) return;
  if (!reading()) return load();
  showWaiting();
  announce(`${counted(waiting.size, "new turn")}.`);
});

const live = new Live({
  rows: (rows) => {
    for (const row of rows) if (inRange(toolbar.view, row, list?.range.from ?? "")) waiting.add(row.turn_id);
    if (waiting.size) settle();
  },
  reset: () => shown !== null && void load(),
  state: shell.showLive,
});

body.addEventListener("click", (event) => {
  const button = /** @type {Element} */ (event.target).closest("button[data-root]");
  if (button instanceof HTMLElement) return void toggle(button.dataset.root ?? "");
  const click = /** @type {MouseEvent} */ (event);
  const row = /** @type {Element} */ (event.target).closest("tr[data-session]");
  if (!row || click.metaKey || click.ctrlKey || click.shiftKey || /** @type {Element} */ (event.target).closest("a") || !getSelection()?.isCollapsed) return;
  const [link] = all(".row-link", row);
  if (link instanceof HTMLAnchorElement) location.assign(link.href);
});

/** @param {string} root */
async function toggle(root) {
  if (open.has(root)) open.delete(root);
  else {
    const members = await membersOf(root).catch((fault) => shell.showFault(fault));
    if (!members) return;
    open.set(root, members);
    announce(`${counted(members.length, "session")} below.`);
  }
  draw();
}

walkByKeys(body, "tr", () => void load());

sort.addEventListener("change", () => toolbar.go({ ...toolbar.view, own: sort.value === "recent" ? {} : { sort: sort.value } }));
byId("show-new").addEventListener("click", () => {
  scrollTo({ top: 0 });
  void load();
});
byId("load-more").addEventListener("click", () => void extend());

legend(byId("legend"));
shell.wireView(toolbar, live, () => void load(), () => void load(), () => reading() || void load());
void load();
