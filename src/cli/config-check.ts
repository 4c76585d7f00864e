/**
 * `twinpost config check FILE`: the effective configuration, or all that is wrong with the file; with --dns
 * also what others find of this gateway in the DNS.
 */
import type { Argv } from 'yargs';
import { effectiveYaml } from '../config/effective.js';
import { loadConfigFile } from '../config/load.js';
import { defaultMemoryBytes } from '../platform/node/memory.js';
import { SECRET_VARIABLE } from './config-file.js';
import type { GatewayConfig } from '../config/types.js';
import { SystemClock } from '../platform/node/clock.js';
import { DnsClient } from '../platform/node/dns/dns-client.js';
import type { CliContext, Terminal } from './context.js';
import { CliError } from './context.js';
import { configDiffCommand, configReloadCommand } from './config-reload.js';
import { listenerLines } from './listener-lines.js';
import { dnsFindings } from './dns-check.js';
import { seldomMeant } from './config-notes.js';
import { judgeFolders } from './folders.js';
import { endingCertificates, unusableLinkFiles } from './link-files.js';
import { receptionWarnings } from './reception-warnings.js';
import { looseFiles, unknownRoutes, unusableFiles, unusableModules } from './reception-files.js';
import { unusableSources } from './source-addresses.js';
import { printable } from './tables.js';

const DNS_CANT_TELL = 3;

export function configCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command('config', 'check a configuration file, or put it in force', (config) =>
    configDiffCommand(configReloadCommand(config, context, done), context, done)
      .command(
        'check <file>',
        'print the configuration in force, secrets hidden; exit code 1 and one line an error',
        (args) =>
          args
            .positional('file', { type: 'string', demandOption: true, describe: 'the YAML file' })
            .option('dns', { type: 'boolean', describe: 'ask what others look for: PTR, DKIM, SPF, DMARC' })
            .option('quiet', { alias: 'q', type: 'boolean', describe: 'print errors only' })
            .example('$0 config check configs/up.yaml', 'check this file and show every default'),
        async (args) => {
          const result =
            loadConfigFile(args.file, { role: 'check', secret: context.environment[SECRET_VARIABLE] });
          if (!result.ok) throw new CliError(result.errors.join('\n'));
          const { gateway, stores } = result.config;
          const folders = judgeFolders(gateway === undefined ? stores : [gateway, ...stores]);
          const unusable = [...folders.errors, ...unusableLinkFiles(gateway, stores)];
          if (gateway !== undefined) {
            unusable.push(...unusableFiles(gateway), ...await unusableModules(gateway));
            unusable.push(...await unusableSources(gateway));
          }
          if (unusable.length > 0) throw new CliError(unusable.join('\n'));
          const ending = endingCertificates(args.file, gateway, stores, Date.now());
          const seldom = seldomMeant(args.file, gateway, stores);
          const warnings = [...folders.warnings, ...ending, ...seldom];
          if (gateway !== undefined) {
            warnings.push(...unknownRoutes(gateway), ...looseFiles(gateway), ...receptionWarnings(gateway));
          }
          for (const warning of warnings) context.terminal.error(warning);
          const memoryBytes = defaultMemoryBytes((gateway ?? stores[0])?.oneHost === true);
          if (args.quiet !== true) {
            context.terminal.write(effectiveYaml(result.value, result.config, memoryBytes));
            const listeners = gateway === undefined ? [] : listenerLines(gateway);
            for (const line of listeners) context.terminal.print(`# listens on ${line}`);
          }
          done(args.dns === true && gateway !== undefined ? await checkDns(gateway, context.terminal) : 0);
        },
      )
      .example('$0 config check configs/up.yaml', 'check this file and show every default')
      .demandCommand(1, 'config what? twinpost config check FILE, or config reload'),
  );
}

/** 1: something is wrong there; 3: the DNS gave no answer. */
async function checkDns(gateway: GatewayConfig, terminal: Terminal): Promise<number> {
  const dns = new DnsClient(gateway.dns, new SystemClock());
  const findings = await dnsFindings(gateway, dns, dns.believesAd);
  dns.close();
  for (const { verdict, text } of findings) {
    if (verdict === 'good') terminal.print(printable(`# dns: ${text}`));
    else terminal.error(printable(`twinpost: dns: ${verdict === 'advice' ? 'advice: ' : ''}${text}`));
  }
  if (findings.some(({ verdict }) => verdict === 'bad')) return 1;
  return findings.some(({ verdict }) => verdict === 'unknown') ? DNS_CANT_TELL : 0;
}
