/**
 * The checked, frozen configuration as the composition roots get it: every default filled in, every value in
 * the unit its name ends with, secrets resolved to bytes. Types only, and only what build.ts makes of several
 * keys: all others are declared in keys/schema.ts, and their types follow from there.
 */
import type { LearnStores, WhoMaySend } from '../gateway/daemon/gateway-options.js';
import type { MailSource } from '../gateway/outbound/pure/source-choice.js';
import type { RouteOptions } from '../gateway/queue/router.js';
import type { RegisterChoice } from '../register/running/open-register.js';
import type { FileKeys, GatewayKeys, SmtpKeys, StoreKeys } from './keys/schema.js';
import type { Address } from './keys/values.js';

type ListenerKeys = Omit<SmtpKeys['listen'][number], 'address' | 'checksSenders'>;

/** What may be left out follows from the certificate, or is an empty list. */
export type ListenerConfig =
  Address
  & { readonly [Key in keyof ListenerKeys]: NonNullable<ListenerKeys[Key]> }
  /** '': senders are not checked there. */
  & { readonly authservId: string };

type OfWhoMaySend = 'authservId' | 'users' | 'recipients' | 'srs' | 'feedback' | 'hooks' | 'limits';

export interface SmtpConfig extends Omit<SmtpKeys, 'listen' | 'postmaster' | OfWhoMaySend>, WhoMaySend {
  readonly listen: readonly ListenerConfig[];
  /** '': mail to postmaster goes where its domain leads. */
  readonly postmaster: string;
}

export interface StorePeerConfig extends Pick<StoreKeys, 'id' | 'host' | 'weight'> {
  readonly paths: NonNullable<NonNullable<GatewayKeys['stores']>[number]['paths']>;
  /** Its admin HTTP, for verbs that look at the whole group. */
  readonly admin: Address | undefined;
}

/** FILE:LINE of the keys that name files and folders which are used later, by key: "gateway.smtp.users". */
export type Places = Readonly<Record<string, string>>;

export interface GatewayConfig
  extends Omit<GatewayKeys, 'group' | 'smtp' | 'routes' | 'secret' | 'secretFile' | 'stores' | 'sources'> {
  /** Ids of the gateways that may take its partitions, and it theirs; undefined: all of the register. */
  readonly group: readonly string[] | undefined;
  readonly hostName: string;
  readonly smtp: SmtpConfig;
  readonly routes: readonly RouteOptions[];
  readonly sources: readonly MailSource[];
  /** Of links: the first, and others that a store may still prove, or prove already. */
  readonly secrets: readonly Uint8Array[];
  readonly stores: readonly StorePeerConfig[];
  /** Stores that the register names are used too: all, or `only` these; undefined: none. */
  readonly learnStores: LearnStores | undefined;
  /** Who says which process holds a partition. */
  readonly register: RegisterChoice;
  /** Started by `twinpost up`: all processes share one host on purpose, placement must not look at labels. */
  readonly oneHost: boolean;
  readonly places: Places;
  /** That routes name, and their hosts. */
  readonly hopFiles: readonly HopFiles[];
}

export interface HopFiles {
  /** The key: "gateway.routes[0].hosts[1]". */
  readonly at: string;
  readonly caFile: string | undefined;
  readonly passwordFile: string | undefined;
}

export interface StoreClientConfig {
  readonly id: string;
  readonly secret: Uint8Array;
  /** Its admin HTTP, for verbs that look at the whole group. */
  readonly admin: Address | undefined;
}

export interface StoreConfig extends Omit<StoreKeys, 'secret' | 'secretFile' | 'gateways'> {
  /** What the file calls it: "store", or "stores[1]". */
  readonly section: string;
  readonly places: Places;
  readonly gateways: readonly StoreClientConfig[];
  /** Lets in any gateway that proves it; undefined: `gateways` only. */
  readonly groupSecret: Uint8Array | undefined;
  /** Where it makes itself known to all gateways; undefined: they know it by their own files. */
  readonly register: RegisterChoice | undefined;
  /** Short name of what the file says of it; nothing of a secret is in it. */
  readonly configurationHash: string;
  /** Started by `twinpost up`: it shares its host's memory with all others. */
  readonly oneHost: boolean;
}

/** All that one file says; a role takes its part. */
export interface Config extends Pick<FileKeys, 'sink'> {
  readonly file: string;
  readonly gateway: GatewayConfig | undefined;
  readonly stores: readonly StoreConfig[];
}
