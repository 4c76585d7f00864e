/**
 * The library's SMTPConnection without what it does once a connection and nobody here asks for:
 * a session object and an envelope at each EHLO, an idle timer, and around the end a log entry, a turn for
 * onClose, a shutdown and five seconds for the client's own end. One client in many brings a single message,
 * so that what a connection costs is what its message costs.
 *
 *   last command answered ── all written, nothing unread ──▶ closed at once
 *                         └─ otherwise, TLS ──▶ library: shutdown, client's end or 5 s ──▶ closed
 *
 * Overrides these library internals (exact version pinned, test/dialog proves them): _armTimeout, _onClose, _resetSession.
 */

import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js';

export abstract class LeanConnection extends SMTPConnection {
  /** The socket is gone; told once. */
  protected abstract onGone(): void;

  /**
   * In place of close(), after the last reply. Bytes that wait unread would make the system reset the connection and take
   * replies with it that the client has not read yet: then the client's end is waited for. So it is in TLS, whose end
   * is a message of its own.
   */
  protected closeAfterLast(nothingUnread: boolean): void {
    if (!nothingUnread || this.secure || this._socket.writableLength > 0) return this.close();
    this._closing = true;
    this._socket.destroy();
  }

  /** The library's own idle timer starts anew at every byte; ours are in deadlines.ts. */
  override _armTimeout(): void { /* Nothing to arm. */ }

  /** What it fills in for handlers of the library, of which none is used. */
  override _resetSession(): void { /* Nothing to reset. */ }

  override _onClose(): void {
    if (this._closed) return;
    this._closed = true;
    clearTimeout(this._closeTimer);
    if (this._parser) {
      this._parser.isClosed = true;
      this._socket.unpipe(this._parser);
      this._parser = false;
    }
    this._server.connections.delete(this);
    this.onGone();
  }
}
