// @ts-check
// The fields of a form: each with its label, its help and a place for what is wrong with it.

import { add, all, fill, h } from "../dom.js";

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Control */
/** @typedef {{help?: string, unit?: string, value?: string | number | null, attributes?: import("../dom.js").Props}} Options */

export class Fields {
  /** @type {Map<string, {box: HTMLElement, controls: Control[], error: HTMLElement, unit: HTMLElement | null}>} */ #fields = new Map();
  #prefix;
  /** What is wrong with the whole, or with a field that the form does not have. */
  fault = h("p", { class: "field-error", role: "alert" });

  #place;

  /**
   * @param {string} prefix of the ids
   * @param {(fault: {code?: string, message: string}) => string | null} [place] the field at fault, where the server does not name it
   */
  constructor(prefix, place = () => null) {
    this.#prefix = prefix;
    this.#place = place;
  }

  /**
   * @param {string} name
   * @param {string} label
   * @param {Options} [options]
   */
  text(name, label, options = {}) {
    const input = h("input", { class: "input", type: "text", autocomplete: "off", ...options.attributes });
    input.value = String(options.value ?? "");
    return this.#field(name, label, input, options);
  }

  /**
   * @param {string} name
   * @param {string} label
   * @param {Options} [options]
   */
  area(name, label, options = {}) {
    const area = h("textarea", { class: "input", rows: 3, ...options.attributes });
    area.value = String(options.value ?? "");
    return this.#field(name, label, area, options);
  }

  /**
   * @param {string} name
   * @param {string} label
   * @param {readonly (readonly [string, string])[]} choices value and words
   * @param {Options} [options]
   */
  select(name, label, choices, options = {}) {
    const select = h("select", { class: "select", ...options.attributes });
    const box = this.#field(name, label, select, options);
    this.choices(name, choices);
    if (options.value !== undefined && options.value !== null) select.value = String(options.value);
    return box;
  }

  /**
   * Boxes of which any may be ticked.
   * @param {string} name
   * @param {string} legend
   * @param {readonly (readonly [string, string])[]} choices
   * @param {{help?: string, ticked?: readonly string[], none?: string}} [options] `none` is said where there is no choice
   */
  boxes(name, legend, choices, { help, ticked = [], none = "" } = {}) {
    const controls = choices.map(([value]) => {
      const box = h("input", { type: "checkbox", value, name });
      box.checked = ticked.includes(value);
      return box;
    });
    const error = h("p", { class: "field-error", id: this.#id(name, "error") });
    const helped = help ? h("p", { class: "help", id: this.#id(name, "help") }, help) : null;
    const described = [helped?.id, error.id].filter(Boolean).join(" ");
    const list = h("div", { class: "ticks" }, ...choices.map(([, words], at) => h("label", {}, controls[at], h("span", {}, words))));
    const box = h("fieldset", { class: "field", "aria-describedby": described }, h("legend", {}, legend),
      choices.length ? list : h("p", { class: "muted" }, none), helped, error);
    this.#fields.set(name, { box, controls, error, unit: null });
    return box;
  }

  /**
   * @param {string} name
   * @param {string} label
   * @param {Control} control
   * @param {Options} options
   */
  #field(name, label, control, { help, unit }) {
    const error = h("p", { class: "field-error", id: this.#id(name, "error") });
    const helped = help ? h("p", { class: "help", id: this.#id(name, "help") }, help) : null;
    control.id = this.#id(name, "field");
    control.name = name;
    control.setAttribute("aria-describedby", [helped?.id, error.id].filter(Boolean).join(" "));
    const suffix = unit === undefined ? null : h("span", { class: "unit", "aria-hidden": "true" }, unit);
    const box = h("div", { class: "field" }, h("label", { for: control.id }, label),
      suffix ? h("div", { class: "with-unit" }, control, suffix) : control, helped, error);
    this.#fields.set(name, { box, controls: [control], error, unit: suffix });
    return box;
  }

  /** @param {string} name @param {string} part */
  #id(name, part) {
    return `${this.#prefix}-${name}-${part}`;
  }

  /** @param {string} name */
  #get(name) {
    const field = this.#fields.get(name);
    if (!field) throw new Error(`the form has no field ${name}`);
    return field;
  }

  /** @param {string} name @returns {Control} */
  control(name) {
    return this.#get(name).controls[0];
  }

  /** @param {string} name */
  value(name) {
    return this.control(name).value.trim();
  }

  /** What a field is called; empty where the form has none of that name. @param {string} name */
  label(name) {
    const field = this.#fields.get(name);
    return field ? (all("label, legend", field.box)[0]?.textContent ?? "") : "";
  }

  /** @param {string} name @returns {string[]} */
  ticked(name) {
    return this.#get(name).controls.filter((box) => box instanceof HTMLInputElement && box.checked).map((box) => box.value);
  }

  /**
   * @param {string} name
   * @param {readonly (readonly [string, string])[]} choices what may be chosen; the present choice stays if it may
   */
  choices(name, choices) {
    const select = this.control(name);
    const before = select.value;
    fill(select, ...choices.map(([value, words]) => h("option", { value }, words)));
    if (choices.some(([value]) => value === before)) select.value = before;
  }

  /**
   * @param {string} name
   * @param {{label?: string, unit?: string, help?: string}} words
   */
  reword(name, { label, unit, help }) {
    const field = this.#get(name);
    const [named] = all("label", field.box);
    const [helped] = all(".help", field.box);
    if (label !== undefined && named) named.textContent = label;
    if (unit !== undefined && field.unit) field.unit.textContent = unit;
    if (help !== undefined && helped) helped.textContent = help;
  }

  clear() {
    this.fault.textContent = "";
    for (const { controls, error } of this.#fields.values()) {
      error.textContent = "";
      for (const control of controls) control.removeAttribute("aria-invalid");
    }
  }

  /**
   * Say what is wrong where it is wrong.
   * @param {unknown} fault
   * @param {boolean} [focus] whether the keyboard goes there
   */
  blame(fault, focus = true) {
    this.clear();
    const told = /** @type {{message: string, hint?: string | null, field?: string | null, code?: string}} */ (fault);
    const found = this.#fields.get(told.field ?? this.#place(told) ?? "");
    if (!found) {
      this.fault.textContent = [told.message, told.hint].filter(Boolean).join(" ");
      if (focus) this.fault.scrollIntoView({ block: "nearest" });
      return;
    }
    found.error.textContent = plainly(told);
    for (const control of found.controls) control.setAttribute("aria-invalid", "true");
    if (!focus) return;
    const folded = found.box.closest("details");
    if (folded) folded.open = true;
    found.controls[0]?.focus();
  }
}

/**
 * What is wrong, to be read at the field: without the name that the field has in the API.
 * @param {{message: string, hint?: string | null, field?: string | null}} fault
 */
export function plainly({ message, hint, field }) {
  const words = field && message.startsWith(`${field} `) ? message.slice(field.length + 1).replace(/^in the rule:? /, "") : message;
  return [words.charAt(0).toUpperCase() + words.slice(1), hint].filter(Boolean).join(" ");
}

/**
 * The last line of a form.
 * @param {string} words of the button that sends it
 * @param {() => void} cancel
 * @param {...import("../dom.js").Child} more
 */
export function formFoot(words, cancel, ...more) {
  const foot = h("div", { class: "form-foot" }, h("button", { type: "submit", class: "button primary" }, words));
  add(foot, ...more, h("button", { type: "button", class: "button quiet", click: cancel }, "Cancel"));
  return foot;
}

/**
 * Send a form once at a time; what is wrong is said at its field.
 * @param {HTMLFormElement} form
 * @param {Fields} fields
 * @param {() => Promise<void>} work
 */
export function onSubmit(form, fields, work) {
  let sending = false;
  form.noValidate = true;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (sending) return;
    sending = true;
    form.setAttribute("aria-busy", "true");
    fields.clear();
    try {
      await work();
    } catch (fault) {
      fields.blame(fault);
    }
    sending = false;
    form.removeAttribute("aria-busy");
  });
}
