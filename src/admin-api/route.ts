/**
 * A row of the tables in routes.ts: one address of the admin HTTP, who may ask it, and the shapes of what is
 * asked and answered. Servers register rows (platform/node/admin-server.ts), the command line asks by them
 * (cli/admin-client.ts). Rows that say `group` have another one below /api/v1/group (group.ts).
 */
import type { z } from 'zod';

/**
 * What a client must be allowed. probe: nothing; scrapers and load balancers have no token. read: to see how
 * things stand, addresses of mail among it. content: to read mail. operate: to change something.
 */
export type Role = 'probe' | 'read' | 'content' | 'operate';

/**
 * An answer without a shape: for people and scrapers; a page of entries (protocol/entry-page.ts); the OpenAPI
 * document (openapi.ts); JSON objects, one a line, as long as who asks wants (trace.ts).
 */
export type PlainAnswer = 'text' | 'entries' | 'document' | 'lines';

export interface Route {
  readonly method: 'GET' | 'POST';
  /** With ":id" where it names something. */
  readonly path: string;
  readonly role: Role;
  /** For the document: one line. */
  readonly summary: string;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** Longer than others. */
  readonly bodyBytesMax?: number;
  /** Until it is answered, where that takes longer than of others. */
  readonly answerMs?: number;
  /**
   * One gateway asks it of all. named: what begins then has one id everywhere, given in the body by who asks,
   * else by that gateway.
   */
  readonly group?: 'asked' | 'named';
  readonly answer: z.ZodType | PlainAnswer;
}

/** Names in a path: of "/orders/:id/go" it is "id". */
export type ParamName<Path extends string> =
  Path extends `${string}:${infer Name}/${infer Rest}` ? Name | ParamName<`/${Rest}`>
  : Path extends `${string}:${infer Name}` ? Name
  : never;

export type ParamsOf<R extends Route> = { readonly [Name in ParamName<R['path']>]: string };

/** What its handler returns and its client gets; of a plain answer nothing is said here. */
export type AnswerOf<R extends Route> = R['answer'] extends z.ZodType ? z.output<R['answer']> : unknown;

/** As a client writes it. */
export type BodyOf<R extends Route> = R['body'] extends z.ZodType ? z.input<R['body']> : undefined;
export type QueryOf<R extends Route> = R['query'] extends z.ZodType ? z.input<R['query']> : undefined;

/** What is asked by a row, in plain text and numbers. */
export interface AskedLoosely {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: unknown;
}

/** Path and query. */
export function addressOf({ path }: Route, { params = {}, query = {} }: AskedLoosely): string {
  const named = path.replace(/:(\w+)/g, (_whole, name: string) => encodeURIComponent(params[name] ?? ''));
  const said = Object.entries(query).map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
  return said.length === 0 ? named : `${named}?${said.join('&')}`;
}
