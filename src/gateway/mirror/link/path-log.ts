/**
 * What one path says in the event log, with the same fields on each line. A store that stays away is
 * reported once per cause, not once per attempt: attempts go on every 2 s for hours.
 */
import type { EventLog } from '../../../platform/ports.js';
import type { Close } from '../../../protocol/messages/close.js';
import * as reasons from '../../../protocol/reasons.js';
import type { PathName } from './link-options.js';
import { PathState, PATH_STATES } from './path-state.js';

/** A store that speaks TLS only hears no HELLO in clear, and says nothing. */
const ENDED = 'closed by the peer';

const FENCED =
  'FENCED: a newer process serves as this gateway, this one stops its link for good';
const NO_VERSION = 'store speaks no VERSION that this gateway speaks: upgrade one of them';
const DENIED =
  'store DENIED this gateway: compare its id and secret in both configurations';

export class PathLog {
  readonly #log: EventLog;
  readonly #store: string;
  readonly #path: PathName;
  #remote: string;
  /** The trouble told last; '' when the path stands. */
  #told = '';

  constructor(log: EventLog, store: string, path: PathName, remote: string) {
    this.#log = log;
    this.#store = store;
    this.#path = path;
    this.#remote = remote;
  }

  /** Its trouble, if it has any, is told anew. */
  moveTo(remote: string): void {
    this.#remote = remote;
    this.#told = '';
  }

  up(state: PathState, bootId: string, protocol: number): void {
    this.#told = '';
    const text = state === PathState.RUN ? 'path to the store is active' : 'path to the store stands by';
    this.#log.info('link', text, this.#fields({ boot: bootId, protocol }));
  }

  moved(from: PathState, to: PathState): void {
    const fields = this.#fields({ from: PATH_STATES[from].name, to: PATH_STATES[to].name });
    this.#log.debug('link', 'path changed its state', fields);
  }

  lost(reason: string, was: PathState): void {
    if (was === PathState.RUN || was === PathState.READY) {
      this.#told = reason;
      const which = was === PathState.RUN ? 'active' : 'standby';
      const text = `${which} path to the store is lost, connecting again`;
      this.#log.warn('link', text, this.#fields({ reason }));
      return;
    }
    const isMute = was === PathState.GREETING && reason === ENDED;
    const why = isMute ? `${reason} without an answer; does it want TLS?` : reason;
    if (!this.#isNews(why)) return;
    const fields = this.#fields({ reason: why });
    this.#log.warn('link', 'store can not be reached on this path, trying again', fields);
  }

  /** The store answered, but is not taken. */
  refusedStore(reason: string): void {
    if (!this.#isNews(reason)) return;
    this.#log.error('link', 'store is not taken, trying again', this.#fields({ reason }));
  }

  malformed(rule: string): void {
    if (!this.#isNews(rule)) return;
    const fields = this.#fields({ rule });
    this.#log.error('link', 'store sent bytes that break the protocol, connection closed', fields);
  }

  closedByStore(close: Close): void {
    const name = reasons.closeReasonName(close.reason);
    if (!this.#isNews(`${name} ${close.text}`)) return;
    const fields = this.#fields({ close: name, text: close.text, detail: close.detail });
    switch (close.reason) {
      case reasons.CLOSE_FENCED:
        this.#log.error('link', FENCED, fields);
        return;
      case reasons.CLOSE_DENIED:
        this.#log.error('link', DENIED, fields);
        return;
      case reasons.CLOSE_VERSION:
        this.#log.error('link', NO_VERSION, fields);
        return;
      case reasons.CLOSE_STOPPING:
        this.#log.info('link', 'store is stopping, trying again', fields);
        return;
      default:
        this.#log.error('link', 'store closed the path, trying again', fields);
    }
  }

  #isNews(trouble: string): boolean {
    if (this.#told === trouble) return false;
    this.#told = trouble;
    return true;
  }

  #fields(more: Readonly<Record<string, string | number>>): Record<string, string | number> {
    return { store: this.#store, path: this.#path, remote: this.#remote, ...more };
  }
}
