/**
 * A TCP proxy that can be made to hold what passes in either direction: half-open connections, lost and late
 * bytes.
 */
import net from 'node:net';
import type { AddressInfo } from 'node:net';

const HOST = '127.0.0.1';

export class TcpProxy {
  /** Bytes of clients are kept here, not passed on; connections they close stay open behind us. */
  holdsRequests = false;
  /** Bytes of the server are kept here. */
  holdsReplies = false;
  readonly #server: net.Server;
  readonly #pairs = new Set<
    { readonly client: net.Socket; readonly server: net.Socket; requests: Buffer[]; replies: Buffer[]; }
  >();

  private constructor(server: net.Server) {
    this.#server = server;
  }

  static async start(port: number): Promise<TcpProxy> {
    const server = net.createServer();
    const proxy = new TcpProxy(server);
    server.on('connection', (client) => {
      proxy.#accept(client, net.connect(port, HOST));
    });
    await new Promise<void>((resolve) => {
      server.listen(0, HOST, resolve);
    });
    return proxy;
  }

  get url(): string {
    return `http://${HOST}:${String((this.#server.address() as AddressInfo).port)}`;
  }

  /**
   * Passes on what was kept, also of connections that their client has closed, and nothing is held any more.
   */
  letGo(): void {
    this.holdsRequests = false;
    this.holdsReplies = false;
    for (const pair of this.#pairs) {
      for (const chunk of pair.requests.splice(0)) pair.server.write(chunk);
      for (const chunk of pair.replies.splice(0)) if (!pair.client.destroyed) pair.client.write(chunk);
    }
  }

  /** Resets every connection. */
  cut(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
    this.#pairs.clear();
  }

  close(): void {
    this.#server.close();
    this.cut();
  }

  #accept(client: net.Socket, server: net.Socket): void {
    const pair = { client, server, requests: [] as Buffer[], replies: [] as Buffer[] };
    this.#pairs.add(pair);
    client.on('data', (chunk: Buffer) => {
      if (this.holdsRequests) pair.requests.push(chunk);
      else server.write(chunk);
    });
    server.on('data', (chunk: Buffer) => {
      if (this.holdsReplies) pair.replies.push(chunk);
      else if (!client.destroyed) client.write(chunk);
    });
    client.on('error', () => {});
    server.on('error', () => {});
    client.on('close', () => {
      if (!this.holdsRequests && pair.requests.length === 0) server.destroy();
    });
    server.on('close', () => {
      client.destroy();
      this.#pairs.delete(pair);
    });
  }
}
