// @ts-check
// The only file that makes elements. Text goes in as text, never as markup.

/** @typedef {string | number | Node | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | EventListener>} Props */

const SVG = "http://www.w3.org/2000/svg";
const assets = document.documentElement.dataset.static ?? "/static";

/**
 * Make an element. A function is a listener, `true` an empty attribute; false, null and undefined are left out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props = {}, ...children) {
  return dressed(document.createElement(tag), props, children);
}

/**
 * Append children; null, undefined and false are left out.
 * @param {Element | DocumentFragment} parent
 * @param {...Child} children
 */
export function add(parent, ...children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(typeof child === "number" ? String(child) : child);
  }
}

/**
 * Replace all that an element holds.
 * @param {Element} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
  parent.replaceChildren();
  add(parent, ...children);
}

/**
 * An icon of the sprite; decoration, so hidden from assistive technology.
 * @param {string} name
 */
export function icon(name) {
  return s("svg", { "aria-hidden": "true", width: 16, height: 16 }, s("use", { href: `${assets}/img/icons.svg#${name}` }));
}

/**
 * Make a part of a drawing.
 * @param {string} tag
 * @param {Props} [props]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function s(tag, props = {}, ...children) {
  return dressed(/** @type {SVGElement} */ (document.createElementNS(SVG, tag)), props, children);
}

/**
 * @template {Element} T
 * @param {T} element
 * @param {Props} props
 * @param {Child[]} children
 */
function dressed(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, ...children);
  return element;
}

/**
 * The element with this id. A missing one is a fault of the template, told by name.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new (...args: never[]) => T} [type]
 * @returns {T}
 */
export function byId(id, type) {
  const element = document.getElementById(id);
  const expected = type ?? HTMLElement;
  if (!(element instanceof expected)) throw new Error(`the page has no #${id}`);
  return /** @type {T} */ (element);
}

/**
 * @param {string} selector
 * @param {ParentNode} [root]
 * @returns {HTMLElement[]}
 */
export function all(selector, root = document) {
  return /** @type {HTMLElement[]} */ ([...root.querySelectorAll(selector)]);
}

/**
 * Load a classic script once; resolves when it has run.
 * @param {string} url
 * @returns {Promise<void>}
 */
export function loadScript(url) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.addEventListener("load", () => resolve());
    script.addEventListener("error", () => reject(new Error(`${url} did not load`)));
    document.head.append(script);
  });
}

/** Whether the keyboard is busy with text, so that single keys are not commands. */
export function typing() {
  const active = document.activeElement;
  return (
    active instanceof HTMLElement &&
    (active.isContentEditable ||
      active.tagName === "TEXTAREA" ||
      active.tagName === "SELECT" ||
      (active instanceof HTMLInputElement && !["checkbox", "radio", "button"].includes(active.type)))
  );
}

/**
 * Say a short sentence to those who listen rather than look.
 * @param {string} sentence
 */
export function announce(sentence) {
  const region = document.getElementById("announcer");
  if (region) region.textContent = sentence;
}

/** Words between backticks are settings, headers and fields. @param {string} text */
export function worded(text) {
  return text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
}

/**
 * A value that copies itself when pressed.
 * @param {string} value what is copied
 * @param {string} name what it is, for the label
 * @param {string} [shown] a shorter form to show
 */
export function copyable(value, name, shown = value) {
  const mark = h("span", {}, icon("copy"));
  const button = h(
    "button",
    { type: "button", class: "copy", title: `Copy ${name}: ${value}`, "aria-label": `Copy ${name} ${value}` },
    h("span", {}, shown),
    mark,
  );
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    if (!(await copyText(value))) return announce("The browser did not allow copying.");
    button.dataset.copied = "";
    fill(mark, icon("check"));
    announce(`Copied ${name}.`);
    setTimeout(() => {
      delete button.dataset.copied;
      fill(mark, icon("copy"));
    }, 1500);
  });
  return button;
}

/**
 * Copy text; the clipboard API needs a secure context, which a plain-HTTP bind is not.
 * @param {string} text
 * @returns {Promise<boolean>}
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
