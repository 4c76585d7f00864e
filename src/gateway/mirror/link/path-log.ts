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
    this.#log.debug('link', 'path changed its state', this.#fields({ from: PATH_STATES[from].name, to: PATH_STATES[to].name }));
  }

  lost(reason: string, was: PathState): void {
    if (was === PathState.RUN || was === PathState.READY) {
      this.#told = reason;
      const text = was === PathState.RUN ? 'active path to the store is lost, connecting again' : 'standby path to the store is lost, connecting again';
      this.#log.warn('link', text, this.#fields({ reason }));
      return;
    }
    const why = was === PathState.GREETING && reason === ENDED ? `${reason} without an answer; does it want TLS?` : reason;
    if (this.#isNews(why)) this.#log.warn('link', 'store can not be reached on this path, trying again', this.#fields({ reason: why }));
  }

  /** The store answered, but is not taken. */
  refusedStore(reason: string): void {
    if (this.#isNews(reason)) this.#log.error('link', 'store is not taken, trying again', this.#fields({ reason }));
  }

  malformed(rule: string): void {
    if (this.#isNews(rule)) this.#log.error('link', 'store sent bytes that break the protocol, connection closed', this.#fields({ rule }));
  }

  closedByStore(close: Close): void {
    const name = reasons.closeReasonName(close.reason);
    if (!this.#isNews(`${name} ${close.text}`)) return;
    const fields = this.#fields({ close: name, text: close.text, detail: close.detail });
    switch (close.reason) {
      case reasons.CLOSE_FENCED:
        this.#log.error('link', 'FENCED: a newer process serves as this gateway, this one stops its link for good', fields);
        return;
      case reasons.CLOSE_DENIED:
        this.#log.error('link', 'store DENIED this gateway: compare its id and secret in both configurations', fields);
        return;
      case reasons.CLOSE_VERSION:
        this.#log.error('link', 'store speaks no VERSION that this gateway speaks: upgrade one of them', fields);
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
