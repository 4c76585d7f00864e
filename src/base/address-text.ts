/** An address and port as people and logs write them (RFC 3986 3.2.2). */
export function addressText(host: string, port: number): string {
  const isBare = host.includes(':') && !host.startsWith('[');
  return `${isBare ? `[${host}]` : host}:${String(port)}`;
}

/** Where mail goes to: "mx.example[192.0.2.1]:25"; an IPv6 address without a name is "[::1]:25". */
export function relayText(host: string, address: string, port: number): string {
  return host.includes(':') ? addressText(host, port) : `${host}[${address}]:${String(port)}`;
}
