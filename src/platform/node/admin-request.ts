/**
 * One question over HTTP to an admin port, and its answer in memory. Who answers may be anybody: the answer
 * is bounded in bytes and in time. What the bytes mean is cli/admin-client.ts, and admin-group.ts where a
 * gateway asks the others of its group.
 */
import http from 'node:http';
import https from 'node:https';
import type { IncomingHttpHeaders } from 'node:http';

/** What is shown, and whom is trusted. */
export interface Access {
  readonly token: string | undefined;
  /** PEM; undefined: the CAs of the system. */
  readonly ca: string | undefined;
}

export interface AdminRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly access: Access;
  /** The gateway that is to answer: another one refuses (admin-guard.ts). Undefined: whoever is there. */
  readonly expected?: string;
  /** Until the whole answer is there. */
  readonly timeoutMs: number;
  /** A longer answer is an error. */
  readonly bytesMax: number;
  /** JSON, of a POST. */
  readonly body: string | undefined;
}

export interface AdminResponse {
  readonly code: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** What is said of an answer that can't be read. */
export const STRANGER = 'what answers is no Twinpost, or another release';
/** In a request: the id of the gateway that is meant. */
export const EXPECTED_HEADER = 'twinpost-expects';

/** Not fetch(): that refuses some ports out of a browser's fears, such as 6000. */
export function ask(
  { method, url, access: { token, ca }, expected, timeoutMs, bytesMax, body }: AdminRequest,
): Promise<AdminResponse> {
  return new Promise((resolve, reject) => {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    if (expected !== undefined) headers[EXPECTED_HEADER] = expected;
    if (body !== undefined) {
      headers['content-type'] = 'application/json';
      headers['content-length'] = String(Buffer.byteLength(body));
    }
    const options = { method, headers, agent: false, ca, signal: AbortSignal.timeout(timeoutMs) } as const;
    const request = (url.startsWith('https:') ? https : http).request(url, options, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > bytesMax) response.destroy(new Error('the answer is too long'));
        else chunks.push(chunk);
      });
      response.once('error', reject);
      response.once('end', () => {
        resolve({ code: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
      });
    });
    request.once('error', reject);
    request.end(body);
  });
}

export interface LinesRequest {
  readonly url: string;
  readonly access: Access;
  /** Ends it well. */
  readonly signal: AbortSignal;
}

/** A line is no longer than this; what is, is no Twinpost. */
const LINE_CHARACTERS_MAX = 64 * 1024;
/** Signs of life come every ten seconds. */
const SILENCE_MS = 30_000;

/** Hears an answer line by line, however long it goes on. Resolves with another answer than 200. */
export function followLines(
  { url, access: { token, ca }, signal }: LinesRequest, heard: (line: string) => void,
): Promise<AdminResponse | undefined> {
  return new Promise((resolve, reject) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const client = url.startsWith('https:') ? https : http;
    const failed = (error: unknown): void => {
      if (signal.aborted) resolve(undefined);
      else reject(error instanceof Error ? error : new Error(String(error)));
    };
    const options = { headers, agent: false, ca, signal, timeout: SILENCE_MS } as const;
    const request = client.get(url, options, (response) => {
      const { statusCode: code = 0 } = response;
      let rest = '';
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        rest += text;
        if (rest.length > LINE_CHARACTERS_MAX) response.destroy(new Error('a line is too long'));
        if (code !== 200) return;
        const lines = rest.split('\n');
        rest = lines.pop() ?? '';
        try {
          for (const line of lines) heard(line);
        } catch (error) {
          response.destroy(error instanceof Error ? error : new Error(String(error)));
        }
      });
      response.once('error', failed);
      response.once('end', () => {
        resolve(code === 200 ? undefined : { code, headers: response.headers, body: Buffer.from(rest) });
      });
    });
    request.once('timeout', () => { request.destroy(new Error('nothing is heard any more')); });
    request.once('error', failed);
  });
}

/** Why there was no answer. */
export interface WhyNoAnswer {
  readonly why: string;
  /** Something listens there. */
  readonly isThere: boolean;
}

/** In a few words. */
export function whyNoAnswer(error: unknown, url: string, timeoutMs: number): WhyNoAnswer {
  const { code, name, message } = error as NodeJS.ErrnoException;
  const isTls = url.startsWith('https:');
  if (code === 'ECONNREFUSED') return { why: 'connection refused', isThere: false };
  if (code === 'ABORT_ERR' || name === 'TimeoutError') {
    return { why: `nothing within ${String(timeoutMs / 1000)} s`, isThere: false };
  }
  if (isTls && (code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER')) {
    return { why: `it speaks no TLS: say ${url.replace('https:', 'http:')}`, isThere: true };
  }
  if (!isTls && code === 'ECONNRESET') {
    const other = url.replace('http:', 'https:');
    return { why: `it closes the connection, as who speaks TLS does: say ${other} if so`, isThere: true };
  }
  return { why: code ?? message, isThere: false };
}
