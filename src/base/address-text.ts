/** An address and port as people and logs write them (RFC 3986 3.2.2). */
export function addressText(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${String(port)}`;
}
