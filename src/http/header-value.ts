/** Words of a caller's as the value of a response header. */

/** Characters; a name that is longer is known by its beginning, and heads of responses have a limit. */
const LIMIT = 256;
const PLAIN = /^[\x21-\x7e]*$/;

/** What is no printable ASCII is percent-encoded, as in a URL: a header cannot hold it, and would fail the response. */
export function headerValue(text: string): string {
  const value = text.slice(0, LIMIT);
  return PLAIN.test(value) ? value : encodeURI(value.toWellFormed());
}
