/**
 * A DNS server on loopback for tests, by UDP and TCP on one port. A script says what is answered to "TYPE
 * name": records, a code, or bytes of the test's own.
 */
import packet from 'dns-packet';
import type { Answer, DecodedPacket } from 'dns-packet';
import { createSocket } from 'node:dgram';
import type { Socket as UdpSocket } from 'node:dgram';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';

const HOST = '127.0.0.1';

/** What the script may say. */
export interface Scripted {
  readonly answers?: readonly Answer[];
  readonly authorities?: readonly Answer[];
  readonly additionals?: readonly Answer[];
  /** 0 NOERROR, 2 SERVFAIL, 3 NXDOMAIN, 5 REFUSED. */
  readonly rcode?: number;
  /** More of dns-packet's flags. */
  readonly flags?: number;
  /** The server resolves names of others: the RA flag, which is set unless this is false. */
  readonly resolves?: boolean;
  /** Cut off by UDP: no answers, the truncated flag. */
  readonly isTruncated?: boolean;
  /** Instead of all that. */
  readonly bytes?: (question: DecodedPacket) => readonly Uint8Array[];
}

/** undefined: silence. */
export type Script = (question: string, by: 'udp' | 'tcp') => Scripted | undefined;

export class NameServer {
  /** "TYPE name", in the order in which they came. */
  readonly asked: string[] = [];
  /** Ports that questions came from by UDP. */
  readonly ports = new Set<number>();
  readonly port: number;
  readonly #udp: UdpSocket;
  readonly #tcp: Server;

  private constructor(udp: UdpSocket, tcp: Server, script: Script) {
    this.port = udp.address().port;
    this.#udp = udp;
    this.#tcp = tcp;
    udp.on('message', (bytes, from) => {
      this.ports.add(from.port);
      for (const answer of this.#answersTo(bytes, 'udp', script)) udp.send(answer, from.port, from.address);
    });
    tcp.on('connection', (socket) => {
      let read = Buffer.alloc(0);
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => {
        read = Buffer.concat([read, bytes]);
        if (read.length < 2 || read.length < 2 + read.readUInt16BE(0)) return;
        for (const answer of this.#answersTo(read.subarray(2), 'tcp', script)) {
          const length = Buffer.alloc(2);
          length.writeUInt16BE(answer.length);
          socket.write(Buffer.concat([length, answer]));
        }
        socket.end();
      });
    });
  }

  static async start(t: { after(run: () => void): void }, script: Script): Promise<NameServer> {
    const tcp = createServer();
    await new Promise<void>((resolve) => { tcp.listen(0, HOST, resolve); });
    const { port } = tcp.address() as AddressInfo;
    const udp = createSocket('udp4');
    await new Promise<void>((resolve, reject) => {
      udp.once('error', reject);
      udp.bind(port, HOST, resolve);
    });
    const server = new NameServer(udp, tcp, script);
    t.after(() => { server.close(); });
    return server;
  }

  /** As an option of the client. */
  get resolver(): { readonly host: string; readonly port: number } {
    return { host: HOST, port: this.port };
  }

  close(): void {
    this.#udp.close();
    this.#tcp.close();
  }

  #answersTo(bytes: Uint8Array, by: 'udp' | 'tcp', script: Script): readonly Uint8Array[] {
    const question = packet.decode(Buffer.from(bytes));
    const [asked] = question.questions ?? [];
    const text = `${asked?.type ?? ''} ${asked?.name ?? ''}`;
    this.asked.push(text);
    const said = script(text, by);
    if (said === undefined) return [];
    if (said.bytes !== undefined) return said.bytes(question);
    return [answerBytes(question, said)];
  }
}

/** The answer to a question as the script says it. */
export function answerBytes(question: DecodedPacket, said: Scripted): Uint8Array {
  const { answers = [], authorities = [], additionals = [], resolves = true, rcode = 0, flags = 0, isTruncated = false } = said;
  return packet.encode({
    id: question.id ?? 0,
    type: 'response',
    flags: packet.RECURSION_DESIRED | (resolves ? packet.RECURSION_AVAILABLE : 0) | flags | rcode
      | (isTruncated ? packet.TRUNCATED_RESPONSE : 0),
    questions: question.questions ?? [],
    answers: isTruncated ? [] : [...answers],
    authorities: [...authorities],
    additionals: [...additionals],
  });
}

/** With records behind those that it has, each of a compressed name: where in the message that is, type and data. */
export function withRecords(message: Uint8Array, count: number, nameAt: number, type: number, data: readonly number[]): Uint8Array {
  const record = [0xc0 | nameAt >> 8, nameAt & 0xff, type >> 8, type & 0xff, 0, 1, 0, 0, 0, 60, data.length >> 8, data.length & 0xff, ...data];
  const all = Buffer.concat([message, ...Array.from({ length: count }, () => Uint8Array.from(record))]);
  all.writeUInt16BE(all.readUInt16BE(6) + count, 6);
  return all;
}
