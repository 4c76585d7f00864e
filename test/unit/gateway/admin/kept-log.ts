/** A log that keeps its lines. */
import type { EventLog, LogFields } from '../../../../src/platform/ports.js';

export class KeptLog implements EventLog {
  readonly lines: { readonly level: string; readonly event: string; readonly text: string; readonly fields: LogFields }[] = [];

  debug(event: string, text: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'debug', event, text, fields });
  }

  info(event: string, text: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'info', event, text, fields });
  }

  warn(event: string, text: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'warn', event, text, fields });
  }

  error(event: string, text: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'error', event, text, fields });
  }
}
