/**
 * How long the certificates of this process are good: looked at when it starts, and every minute after that,
 * for the files may be renewed at any time, and are in force a second later. One that ends within two weeks,
 * or has ended, is told of once a day. Off the path of mail. Owns the ends that metrics show.
 */
import { errorText } from '../../base/error-text.js';
import type { EventLog } from '../ports.js';
import { certificateFacts, readPem } from './certificates.js';

/** A handful of small files: no work worth a stamp. */
const LOOK_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
/** Short enough for those that are renewed by themselves every 60 days, some 30 before their end. */
const SOON_MS = 14 * DAY_MS;

/** For what, "smtp", "links", "register" or "admin", and where. */
export interface CertificateFile {
  readonly use: string;
  readonly file: string;
}

type TlsSection = { readonly certFile: string } | undefined;

/** Of a process: of its listeners for mail, of its links, of its admin port, and what etcd asks it for. */
export interface TlsSections {
  readonly smtp?: TlsSection;
  readonly links?: TlsSection;
  readonly admin?: TlsSection;
  /** A file, a socket, and an etcd that asks for none have no certificate of ours. */
  readonly register?: { readonly certFile?: string | undefined } | undefined;
}

export function certificateFiles({ smtp, links, admin, register }: TlsSections): readonly CertificateFile[] {
  const uses = [['smtp', smtp], ['links', links], ['admin', admin], ['register', register]] as const;
  return uses.flatMap(([use, tls]) => (tls?.certFile === undefined ? [] : [{ use, file: tls.certFile }]));
}

/** '' while it is good for two weeks and more; else what is to be said of it. */
export function endingText(pem: string, nowMs: number): string {
  const { expires, beginsMs, endsMs } = certificateFacts(pem);
  if (nowMs >= endsMs) return `the certificate has expired: ${expires}; renew it`;
  if (nowMs < beginsMs) return `the certificate is not valid before ${new Date(beginsMs).toISOString()}`;
  if (endsMs - nowMs > SOON_MS) return '';
  const days = Math.floor((endsMs - nowMs) / DAY_MS);
  return `the certificate expires in ${String(days)} days, ${expires}: renew it`;
}

/** For the life of the process. */
export function watchCertificates(sections: TlsSections, log: EventLog): CertificateEnds {
  const certificates = new CertificateEnds(certificateFiles(sections), log);
  const look = (): void => { certificates.look(Date.now()); };
  look();
  setInterval(look, LOOK_MS).unref();
  return certificates;
}

export class CertificateEnds {
  #files: readonly CertificateFile[];
  readonly #log: EventLog;
  readonly #ends = new Map<string, number>();
  readonly #tellAgainMs = new Map<string, number>();

  constructor(files: readonly CertificateFile[], log: EventLog) {
    this.#files = files;
    this.#log = log;
  }

  /** Unix time in milliseconds, by use. */
  get ends(): ReadonlyMap<string, number> {
    return this.#ends;
  }

  /** Others than before, from now on. */
  lookAt(files: readonly CertificateFile[], nowMs: number): void {
    this.#files = files;
    this.#tellAgainMs.clear();
    for (const use of this.#ends.keys()) if (!files.some((each) => each.use === use)) this.#ends.delete(use);
    this.look(nowMs);
  }

  look(nowMs: number): void {
    for (const { use, file } of this.#files) {
      const why = this.#judge(use, file, nowMs);
      if (why === '') this.#tellAgainMs.delete(use);
      else if (nowMs >= (this.#tellAgainMs.get(use) ?? 0)) {
        this.#tellAgainMs.set(use, nowMs + DAY_MS);
        this.#log.warn('tls', 'a certificate is to be renewed', { use, file, why });
      }
    }
  }

  #judge(use: string, file: string, nowMs: number): string {
    try {
      const pem = readPem('cert', file);
      this.#ends.set(use, certificateFacts(pem).endsMs);
      return endingText(pem, nowMs);
    } catch (error) {
      // What was read before stays in force, and with it its end.
      return errorText(error);
    }
  }
}
