/**
 * The register's file of one `up`: this process keeps it and serves it to all its gateways, so that it stands
 * while they die. With etcd in the configuration there is none to keep.
 */
import fs from 'node:fs';
import path from 'node:path';
import { errorText } from '../../base/error-text.js';
import type { RegisterChoice } from '../../register/running/open-register.js';
import { crc32 } from '../../platform/node/checksum.js';
import { NodeLog, logDestination } from '../../platform/node/log.js';
import { FileRegister } from '../../register/file/file-register.js';
import { CliError } from '../context.js';

const NAME = 'register';
const LOG_DRAIN_MS = 1_000;

export interface UpRegister {
  /** For the environment of the gateways; undefined: they know it by their configuration. */
  readonly folder: string | undefined;
  close(): Promise<void>;
}

/**
 * `choice` is what the gateways would do by themselves. `folder` is for the file, `logFolder` for what it
 * says.
 */
export async function openUpRegister(
  choice: RegisterChoice, folder: string, logFolder: string,
): Promise<UpRegister> {
  if (choice.kind !== 'file') return { folder: undefined, close: () => Promise.resolve() };
  const fd = fs.openSync(path.join(logFolder, `${NAME}.log`), 'a', 0o640);
  const destination = logDestination(fd, NAME);
  const log = new NodeLog({ level: 'info', name: NAME }, destination);
  try {
    const file = await FileRegister.open({ stateDir: folder, isServed: true }, { crc32, log });
    return {
      folder,
      close: async () => {
        await file.close();
        await destination.drain(LOG_DRAIN_MS);
      },
    };
  } catch (error) {
    throw new CliError(`up: ${errorText(error)}`);
  }
}
