/**
 * What a module of `smtp.hooks` exports, for who writes one (docs/HOOKS.md): `import type { OnMessage } from
 * 'twinpost/hooks'`. Types only.
 *
 *   export const onMessage: OnMessage = () => ({ action: 'accept' });
 */

/** A whole message, right before the gateway takes it. A copy: what is done to it changes nothing. */
export interface ModuleMessage {
  readonly queueId: string;
  /** Address of the client, the real one behind PROXY or XCLIENT; '' if they did not tell it. */
  readonly client: string;
  readonly helo: string;
  /** Who has authenticated; '' nobody. */
  readonly user: string;
  /** "TLSv1.3"; '' in clear. */
  readonly tls: string;
  /** As the client wrote it, maybe beyond ASCII; '' is the null reverse-path. */
  readonly from: string;
  /**
   * As the client named them, maybe beyond ASCII: a list is one. Each has a domain, <postmaster> the name of
   * the gateway.
   */
  readonly recipients: readonly string[];
  /** Where it goes: what aliases lead to. Nobody who reads the message, or sent it, need know that. */
  readonly destinations: readonly string[];
  /** The Received field of the gateway and what else it puts in front, then what the client sent. */
  readonly content: Uint8Array;
}

/** A header field that is put in front. */
export interface ModuleField {
  /** Letters, digits, - and _. */
  readonly name: string;
  /** Printable ASCII; a folded line begins with a blank. */
  readonly value: string;
}

/** `text`: for the client, behind 550 5.7.1 or 451 4.7.1; one line of ASCII, cut at 200 characters. */
export type ModuleVerdict =
  | { readonly action: 'accept'; readonly fields?: readonly ModuleField[] }
  | { readonly action: 'refuse' | 'defer'; readonly text?: string };

/** What throws, or comes to anything else, is a hook that failed. */
export type OnMessage = (message: ModuleMessage) => ModuleVerdict | Promise<ModuleVerdict>;
