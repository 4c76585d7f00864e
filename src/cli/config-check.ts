/**
 * `twinpost config check FILE`: the effective configuration, or all that is wrong with the file; with --dns
 * also what others find of this gateway in the DNS.
 */
import type { Argv } from 'yargs';
import type { DnsFinding } from '../admin-api/explain.js';
import { effectiveValue, effectiveYaml } from '../config/effective.js';
import { loadConfigFile } from '../config/load.js';
import type { LoadResult } from '../config/load.js';
import { SECRET_VARIABLE, memoryBytesOf } from './config-file.js';
import type { GatewayConfig } from '../config/types.js';
import { SystemClock } from '../platform/node/clock.js';
import { DnsClient } from '../platform/node/dns/dns-client.js';
import type { LookUpHost } from '../platform/resolver.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { configDiffCommand, configReloadCommand } from './config-reload.js';
import { configShowCommand } from './config-show.js';
import { listenerLines } from './listener-lines.js';
import { dnsFindings } from './dns-check.js';
import { userNotes } from './config-notes.js';
import { configWarnings } from './config-warnings.js';
import { judgeFolders } from './folders.js';
import { unusableLinkFiles } from './link-files.js';
import { unusableFiles, unusableModules } from './reception-files.js';
import { foreignListeners, unusableSources } from './source-addresses.js';
import { printable } from './tables.js';

const DNS_CANT_TELL = 3;

type Loaded = Extract<LoadResult, { readonly ok: true }>;

export function configCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command('config', 'check or show a configuration file, or put it in force', (config) => {
    configReloadCommand(config, context, done);
    configDiffCommand(config, context, done);
    configShowCommand(config, context, done);
    return config
      .command(
        'check <file>',
        'print a file with every default, secrets hidden; exit code 1 and one line an error',
        (args) =>
          args
            .positional('file', { type: 'string', demandOption: true, describe: 'the YAML file' })
            .option('dns', { type: 'boolean', describe: 'ask what others look for: PTR, DKIM, SPF, DMARC' })
            .option('json', { type: 'boolean', describe: 'one JSON object: errors, warnings, all keys' })
            .option('quiet', { alias: 'q', type: 'boolean', describe: 'print errors only' })
            .example('$0 config check configs/up.yaml', 'check this file and show every default'),
        async (args) => {
          const checked = await check(args.file, args.dns === true, context);
          done(args.json === true ? tellJson(checked, context) : tell(checked, args.quiet === true, context));
        },
      )
      .example('$0 config check configs/up.yaml', 'check this file and show every default')
      .demandCommand(1, 'config what? twinpost config check FILE, or config reload');
  });
}

interface Checked {
  readonly file: string;
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  /** Undefined where something is wrong. */
  readonly loaded: Loaded | undefined;
  /** What others find in the DNS; none were asked for, or none are of use. */
  readonly dns: readonly DnsFinding[];
}

async function check(
  file: string, asksDns: boolean, { environment, lookUpHost }: CliContext,
): Promise<Checked> {
  const loaded = loadConfigFile(file, { role: 'check', secret: environment[SECRET_VARIABLE] });
  const failed = { file, warnings: [], loaded: undefined, dns: [] };
  if (!loaded.ok) return { ...failed, errors: loaded.errors };
  const { gateway, stores } = loaded.config;
  const folders = judgeFolders(gateway === undefined ? stores : [gateway, ...stores]);
  const errors = [...folders.errors, ...unusableLinkFiles(gateway, stores)];
  if (gateway !== undefined) {
    errors.push(...unusableFiles(gateway), ...await unusableModules(gateway));
    errors.push(...await unusableSources(gateway));
  }
  if (errors.length > 0) return { ...failed, errors };
  const warnings = [
    ...folders.warnings, ...configWarnings(file, gateway, stores, Date.now()),
    ...await foreignListeners(gateway, stores), ...(gateway === undefined ? [] : userNotes(gateway)),
  ];
  const dns = asksDns && gateway !== undefined ? await askDns(gateway, lookUpHost) : [];
  return { file, errors, warnings, loaded, dns };
}

async function askDns(gateway: GatewayConfig, lookUpHost: LookUpHost): Promise<readonly DnsFinding[]> {
  const dns = new DnsClient(gateway.dns, new SystemClock());
  const findings = await dnsFindings(gateway, dns, dns.believesAd, lookUpHost);
  dns.close();
  return findings;
}

function tell(
  { errors, warnings, loaded, dns }: Checked, isQuiet: boolean, { terminal }: CliContext,
): number {
  if (loaded === undefined) throw new CliError(errors.join('\n'));
  for (const warning of warnings) terminal.error(warning);
  const { gateway } = loaded.config;
  if (!isQuiet) {
    terminal.write(effectiveYaml(loaded.value, loaded.config, memoryBytesOf(loaded.config)));
    for (const line of gateway === undefined ? [] : listenerLines(gateway)) {
      terminal.print(`# listens on ${line}`);
    }
    if (gateway?.register.kind === 'etcd') {
      terminal.print(`# takes over from ${takesOverFrom(gateway, gateway.register.cluster)}`);
    }
  }
  for (const { verdict, text } of dns) {
    if (verdict === 'good') {
      if (!isQuiet) terminal.print(printable(`# dns: ${text}`));
    } else terminal.error(printable(`twinpost: dns: ${verdict === 'advice' ? 'advice: ' : ''}${text}`));
  }
  return codeOf(dns);
}

/** Whose mail it delivers when they stay dead. */
function takesOverFrom({ id, group, rescue }: GatewayConfig, cluster: string): string {
  if (!rescue) return 'no gateway: rescue is off';
  if (group === undefined) return `every gateway of cluster ${cluster} in the register: group is left out`;
  const others = group.filter((other) => other !== id);
  return `${others.length === 0 ? 'no gateway' : others.join(' ')}: group says so`;
}

/** All of it in one object, what is wrong as well. */
function tellJson({ file, errors, warnings, loaded, dns }: Checked, { terminal }: CliContext): number {
  const configuration = loaded === undefined
    ? null : effectiveValue(loaded.value, loaded.config, memoryBytesOf(loaded.config));
  terminal.print(JSON.stringify({ file, ok: errors.length === 0, errors, warnings, dns, configuration }));
  return errors.length > 0 ? 1 : codeOf(dns);
}

/** 1: something is wrong there; 3: the DNS gave no answer. */
function codeOf(findings: readonly DnsFinding[]): number {
  if (findings.some(({ verdict }) => verdict === 'bad')) return 1;
  return findings.some(({ verdict }) => verdict === 'unknown') ? DNS_CANT_TELL : 0;
}
