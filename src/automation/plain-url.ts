/** An http or https address without a user name or password, which would be kept and shown in clear. */
export function isPlainUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
}
