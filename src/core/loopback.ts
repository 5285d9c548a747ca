/** Which names mean this machine and nobody else. Pure; decides what may be bound and called without a token. */

/**
 * `localhost` and the names below it, 127.0.0.0/8 in plain decimal, `::1`; brackets and a last dot are allowed, a port
 * is not. Other spellings of these addresses (octal, hexadecimal, mapped) are not loopback here: no client needs them.
 */
export function isLoopback(host: string): boolean {
  let name = host.toLowerCase();
  if (name === "localhost" || name === "127.0.0.1" || name === "[::1]" || name === "::1") return true;
  if (name.endsWith(".")) name = name.slice(0, -1);
  if (name === "localhost" || name.endsWith(".localhost")) return true;
  const octets = name.split(".");
  return octets.length === 4 && octets[0] === "127" && octets.every(isOctet);
}

function isOctet(text: string): boolean {
  if (text.length === 0 || text.length > 3 || (text.length > 1 && text[0] === "0")) return false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c < 48 || c > 57) return false;
  }
  return Number(text) <= 255;
}
