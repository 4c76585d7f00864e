/** Composition root of a store: configuration in, running daemon out. Behaviour is in kvs/daemon. */
import { errorText } from '../base/error-text.js';
import type { RunningRole, StoreFile } from '../cli/context.js';
import { CliError } from '../cli/context.js';
import { storeWarnings } from '../cli/config-warnings.js';
import { storeTls, unusableLinkFiles } from '../cli/link-files.js';
import { keysOfStore } from '../config/changes.js';
import { addressText } from '../config/keys/values.js';
import type { StoreConfig } from '../config/types.js';
import type { Renewal } from '../gateway/inbound/listener.js';
import { startStore } from '../kvs/daemon/store-daemon.js';
import type { RunningStore } from '../kvs/daemon/running-store.js';
import type { StoreDaemonOptions } from '../kvs/daemon/store-daemon.js';
import { certificateFiles, watchCertificates } from '../platform/node/certificate-ends.js';
import type { CertificateEnds } from '../platform/node/certificate-ends.js';
import { crc32 } from '../platform/node/checksum.js';
import { defaultMemoryBytes } from '../platform/node/memory.js';
import { MessagePacker } from '../platform/node/packer.js';
import { TlsListener } from '../platform/node/tls-transport.js';
import { NO_EFFECTS } from '../platform/reloads.js';
import type { Listener } from '../platform/transport.js';
import { FENCED_EXIT_CODE, tellTerminal } from './last-words.js';
import type { NodePorts } from './node-ports.js';
import { drainLog, nodePorts } from './node-ports.js';
import type { HangUps } from './signals.js';
import { packageVersion } from './package-version.js';
import { Reloads } from './reloads.js';
import type { ReloadTarget } from './reloads.js';

function listenerOf({ id, tls }: StoreConfig, ports: NodePorts): Listener {
  if (tls === undefined) return ports.transport;
  try {
    return new TlsListener(tls, (reason, remote) => {
      ports.log.error('link', 'a peer was not let in: TLS', { store: id, remote, reason });
    });
  } catch (error) {
    throw new CliError(`store ${id}: tls: ${errorText(error)}`);
  }
}

function requireLinkFiles(config: StoreConfig): void {
  const unusable = unusableLinkFiles(undefined, [config]);
  if (unusable.length > 0) throw new CliError(unusable.join('\n'));
}

function gatewaysOf({ gateways }: StoreConfig): StoreDaemonOptions['gateways'] {
  return gateways.map(({ admin, ...client }) =>
    ({ ...client, admin: admin === undefined ? undefined : addressText(admin) }));
}

/** Nothing that it may hold by now is let go of without the gateways having it elsewhere, or a file. */
function endRefused(
  id: string, why: string, stop: () => Promise<void>, ports: NodePorts,
): void {
  const text = 'another process of this store is in the register; this one stops';
  ports.log.error('fenced', text, { store: id, why });
  tellTerminal(`twinpost: store ${id} ends: ${why}`);
  const ended = stop().finally(() => drainLog(ports));
  void ended.finally(() => { process.exit(FENCED_EXIT_CODE); });
}

const STARTING = 'this store still starts: ask again';

/** The store of this process, which may go by another configuration. */
class StoreLife implements ReloadTarget<StoreConfig> {
  readonly #config: StoreConfig;
  readonly #ports: NodePorts;
  readonly #certificates: CertificateEnds;
  readonly #reloads: Reloads<StoreConfig>;
  #store: RunningStore | undefined;

  constructor(file: StoreFile, ports: NodePorts) {
    const { config } = file;
    this.#config = config;
    this.#ports = ports;
    this.#certificates = watchCertificates(storeTls(config), ports.log);
    this.#reloads = new Reloads(file, {
      log: ports.log, keysOf: keysOfStore(config.id, config.oneHost), warningsOf: storeWarnings,
      target: this,
      // Half of it is in force: whoever asked by HTTP would keep the error to himself.
      onBroken: (error) => { setImmediate(() => { throw error; }); },
    });
  }

  async begin(): Promise<RunningStore> {
    const config = this.#config;
    const ports = this.#ports;
    const store = await startStore(
      {
        ...config,
        storeId: config.id,
        paths: config.paths.map(({ name, address, advertised }) => ({
          name, ...address, advertised: advertised === undefined ? undefined : addressText(advertised),
        })),
        admin: config.admin,
        gateways: gatewaysOf(config),
        memoryLimitBytes: config.memory.limitBytes ?? defaultMemoryBytes(config.oneHost),
        version: packageVersion(),
      },
      {
        clock: ports.clock, crc32, packer: new MessagePacker(), secrets: ports.secrets, log: ports.log,
        listener: listenerOf(config, ports),
        certificateEnds: this.#certificates.ends,
        logLosses: ports.destination,
        reloads: {
          reload: (order) => this.#reloads.reload(order),
          compare: () => this.#reloads.compare(({ config: next }) => {
            requireLinkFiles(next);
            return Promise.resolve(NO_EFFECTS);
          }),
        },
        onRefused: (why) => { endRefused(config.id, why, () => store.stop(), ports); },
      },
    );
    this.#store = store;
    return store;
  }

  follow(hangUps: HangUps | undefined): void {
    hangUps?.reload(this.#reloads);
  }

  prepare({ config }: StoreFile): Promise<Renewal> {
    requireLinkFiles(config);
    const store = this.#store;
    if (store === undefined) throw new CliError(STARTING);
    const { groupSecret, configurationHash, log } = config;
    const use = (): void => {
      store.renew({ gateways: gatewaysOf(config), groupSecret, configurationHash });
      this.#ports.log.level = log.level;
      this.#certificates.lookAt(certificateFiles(storeTls(config)), Date.now());
    };
    return Promise.resolve({ use, drop: () => undefined });
  }

  refused(why: string): void {
    this.#store?.refused(why);
  }
}

export async function startStoreProcess(
  file: StoreFile, hangUps: HangUps | undefined,
): Promise<RunningRole> {
  const { config } = file;
  requireLinkFiles(config);
  const ports = nodePorts(config.log, config.id);
  const life = new StoreLife(file, ports);
  const running = await life.begin();
  life.follow(hangUps);
  const listens = config.paths.map(({ name, address: { host, port } }, i) =>
    `${name} ${addressText({ host, port: running.ports[i] ?? port })}`);
  const admin = addressText({ host: config.admin.listen.host, port: running.adminPort });
  return {
    summary: `store ${config.id} listens on ${listens.join(', ')}; admin on ${admin}`,
    stop: async () => {
      try {
        await running.stop();
      } finally {
        await drainLog(ports);
      }
    },
  };
}
