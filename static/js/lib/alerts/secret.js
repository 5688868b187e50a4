// @ts-check
// Secrets that messages are signed with. Made here, so that a strong one costs one press.

/** `whsec_` and base64 of 32 random bytes, as Standard Webhooks writes secrets. */
export function newSecret() {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}
