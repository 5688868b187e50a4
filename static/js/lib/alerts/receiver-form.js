// @ts-check
// The forms of a receiver: its address and secret, and the exchange of the secret. What is stored is never shown.

import { send } from "../api.js";
import { closePanel, leavePanel, openPanel } from "../dialog.js";
import { add, announce, copyable, fill, h } from "../dom.js";
import { Fields, formFoot, onSubmit } from "./fields.js";
import { KINDS } from "./receivers.js";
import { newSecret } from "./secret.js";

const SECRET = "whsec_ and base64 of 24 to 64 bytes, or env:NAME. The receiver checks signatures with it.";
const HIDDEN = { type: "password", autocomplete: "new-password", spellcheck: "false" };

/**
 * @param {any} receiver null for a new one
 * @param {string[]} privateHosts hosts that may have a private address
 * @param {(saved: any) => void} saved
 */
export function openReceiverForm(receiver, privateHosts, saved) {
  const fields = new Fields("receiver", (fault) => place(fault, "secrets"));
  const secret = h("div", {});
  const form = h("form", { class: "form", "aria-label": "Receiver" },
    fields.text("name", "Name", { value: receiver?.name, help: "Rules name it.", attributes: { maxlength: 100, required: true } }),
    fields.select("kind", "Kind", KINDS, { value: receiver?.kind ?? "webhook" }),
    fields.text("url", "URL", { attributes: HIDDEN, help: addressHelp(receiver, privateHosts) }),
    secret, fields.fault, formFoot(receiver ? "Save receiver" : "Add receiver", leavePanel));
  // a receiver of another kind is signed anew; one of the same keeps its secrets
  const another = () => !receiver || fields.value("kind") !== receiver.kind;
  const follow = () => {
    const kind = fields.value("kind");
    const asked = another() && kind !== "slack"; // Slack takes none
    fill(secret, asked && secretField(fields, "secrets", "Secret", kind === "webhook" ? SECRET : `${SECRET} It may stay empty.`));
  };
  fields.control("kind").addEventListener("change", follow);
  follow();
  onSubmit(form, fields, async () => {
    /** @type {Record<string, unknown>} */
    const body = { name: fields.value("name"), kind: fields.value("kind") };
    if (fields.value("url")) body.url = fields.value("url");
    const typed = secret.childElementCount ? fields.value("secrets") : "";
    if (another()) body.secrets = typed ? [typed] : [];
    if (receiver) body.version = receiver.version;
    const answer = await send(receiver ? "PUT" : "POST", receiver ? path(receiver) : "/api/alerts/receivers", body);
    closePanel();
    announce(`Saved the receiver ${answer.receiver.name}.`);
    saved(answer.receiver);
  });
  openPanel(receiver ? `Edit ${receiver.name}` : "New receiver", [form]);
}

/**
 * @param {any} receiver
 * @param {string[]} privateHosts
 */
function addressHelp(receiver, privateHosts) {
  const words = receiver ? `Empty: the stored address at ${receiver.shown} stays. ` : "";
  const hosts = privateHosts.length ? ` Private addresses are allowed for ${privateHosts.join(", ")}.` : "";
  return `${words}https, or env:NAME. It is stored encrypted and not shown again.${hosts}`;
}

/**
 * A field for a secret, with a button that makes one. A made one can be copied until the panel closes.
 * @param {Fields} fields
 * @param {string} name
 * @param {string} label
 * @param {string} help
 */
function secretField(fields, name, label, help) {
  const box = fields.text(name, label, { attributes: HIDDEN, help });
  const made = h("div", { class: "made", role: "status" });
  add(box, h("div", {}, h("button", { type: "button", class: "button small", click: () => {
    const secret = newSecret();
    fields.control(name).value = secret;
    fill(made, h("p", {}, "Copy it to the receiver now; it is not shown again."), copyable(secret, "secret"));
  } }, "Generate")), made);
  return box;
}

/**
 * Exchange the secret: add a new one, change the receiver, retire the old one.
 * @param {any} receiver
 * @param {(saved: any) => void} saved
 */
export function openSecretForm(receiver, saved) {
  const fields = new Fields("secret", (fault) => place(fault, "add_secret"));
  const two = receiver.secrets > 1;
  const form = h("form", { class: "form", "aria-label": "Secrets" });
  const done = async (/** @type {unknown} */ body, /** @type {string} */ words) => {
    const answer = await send("PUT", path(receiver), body);
    closePanel();
    announce(words);
    saved(answer.receiver);
  };
  if (two) {
    add(form, h("p", {}, "Messages are signed with the new and the old secret. Once the receiver knows the new one, retire the old one."),
      fields.fault, formFoot("Retire the old secret", leavePanel));
  } else {
    add(form, h("p", {}, receiver.signed ? "Add a new secret: messages are then signed with both, so that the receiver can change at its own time." : "Messages are not signed yet."),
      secretField(fields, "add_secret", "New secret", SECRET), fields.fault, formFoot("Add the new secret", leavePanel));
  }
  onSubmit(form, fields, () => two
    ? done({ retire_old_secret: true, version: receiver.version }, "Retired the old secret.")
    : done({ add_secret: fields.value("add_secret"), version: receiver.version }, "Added the new secret."));
  openPanel(`Secrets of ${receiver.name}`, [form]);
}

const PLACES = /** @type {Record<string, string>} */ ({ name_taken: "name", bad_address: "url", address_refused: "url" });

/**
 * @param {{code?: string, message: string}} fault
 * @param {string} secret the name of the field of the secret
 */
function place(fault, secret) {
  return PLACES[fault.code ?? ""] ?? (/secret|whsec_/i.test(fault.message) ? secret : null);
}

/** @param {any} receiver */
function path(receiver) {
  return `/api/alerts/receivers/${encodeURIComponent(receiver.id)}`;
}
