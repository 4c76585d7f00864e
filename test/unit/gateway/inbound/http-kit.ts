/** A real HTTP server that tests answer by, and a clock and a log for who asks it. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { HttpServicePorts } from '../../../../src/gateway/inbound/http-service.js';
import { LookupMeter } from '../../../../src/observability/reception-metrics.js';

export type Answer = (request: IncomingMessage, body: string, response: ServerResponse) => void;

export class HttpKit {
  nowMs = 0;
  readonly meter = new LookupMeter();
  asked = 0;
  answer: Answer;
  /** What the log was told. */
  readonly told: string[] = [];
  readonly #server = createServer((request, response) => {
    let body = '';
    request.on('data', (bytes: Buffer) => { body += bytes.toString(); });
    request.on('end', () => {
      this.asked += 1;
      this.answer(request, body, response);
    });
  });

  constructor(answer: Answer) {
    this.answer = answer;
  }

  get url(): string {
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}/check`;
  }

  get ports(): HttpServicePorts {
    const note = (_event: string, text: string): void => { this.told.push(text); };
    return { clock: { nowMs: () => this.nowMs, wallMs: () => 0 }, log: { debug: note, info: note, warn: note, error: note }, meter: this.meter };
  }

  async run(story: () => Promise<void>): Promise<void> {
    await new Promise<void>((resolve) => { this.#server.listen(0, '127.0.0.1', resolve); });
    try {
      await story();
    } finally {
      this.#server.closeAllConnections();
      this.#server.close();
    }
  }
}

/** What no server should answer. */
export const UNCLEAR: readonly (readonly [string, Answer])[] = [
  ['another status', (_request, _body, response) => { response.writeHead(500).end(); }],
  ['a redirect, also to who would answer', (request, _body, response) => {
    if (request.url === '/else') response.end('{}');
    else response.writeHead(307, { location: '/else' }).end();
  }],
  ['no answer in time', () => undefined],
  ['an answer that never ends', (_request, _body, response) => { response.writeHead(200).write('{'); }],
  ['a connection that breaks', (request) => { request.socket.destroy(); }],
  ['an empty answer', (_request, _body, response) => { response.writeHead(200).end(); }],
  ['an answer of blanks', (_request, _body, response) => { response.writeHead(200).end(' \r\n'); }],
  ['no JSON', (_request, _body, response) => { response.writeHead(200).end('yes'); }],
  ['a key that nobody knows', (_request, _body, response) => { response.writeHead(200).end('{"ok": false}'); }],
  ['no mapping', (_request, _body, response) => { response.writeHead(200).end('[]'); }],
  ['an answer that is too long', (_request, _body, response) => { response.writeHead(200).end(`{"addresses": ["${'x'.repeat(100_000)}"]}`); }],
];
