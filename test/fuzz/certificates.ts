/**
 * Certificates for targets that judge them, made once by openssl with keys that nobody has any more: keys of P-256, DER
 * as base64. All are from 2026-11-27, and good for a century but for `over`, which was for a day.
 */
import { X509Certificate } from 'node:crypto';

export interface TestCertificate {
  readonly name: 'ca' | 'stranger' | 'leaf' | 'other' | 'over';
  readonly der: Buffer;
  readonly spki: Buffer;
  /** Whom it is for, and who has signed it. */
  readonly host: string;
  readonly signer: 'ca' | 'stranger';
  readonly isOver: boolean;
}

const DER: Readonly<Record<TestCertificate['name'], string>> = {
  ca: 'MIIBejCCASGgAwIBAgIUONHkmzml46wN1llKSTgPWtYBwMIwCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHY2EudGVzdDAgFw0yNjExMjcxMjMxNTZaGA8yMTI2MTEwMzEyMzE1NlowEjEQMA4GA1UEAwwHY2EudGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMTkyVeOxya0OWjVxQuWkDx/dU4uQ1c/rMF9TCBmtWeY3SSjOXA+zdHkAnsp3K/Jz04CBev+z/zwzyRfUBPM9gajUzBRMB0GA1UdDgQWBBSh7uNF4cmwgvrDvyuAk1mhJDj6MjAfBgNVHSMEGDAWgBSh7uNF4cmwgvrDvyuAk1mhJDj6MjAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCICRbSCPyGxjqH9wP2FV8JvX2nj5dRE1/f0NK0LdJMn/UAiBTPJaNBmAVrNqk3cnK07jRUfiLs9u4vxDRMX/f1L7jXQ==',
  stranger: 'MIIBnjCCAUSgAwIBAgIUVosx8McS2jsiQnlQtTiGuMXxiSgwCgYIKoZIzj0EAwIwFzEVMBMGA1UEAwwMbXguYS5leGFtcGxlMCAXDTI2MTEyNzEyMzE1NloYDzIxMjYxMTAzMTIzMTU2WjAXMRUwEwYDVQQDDAxteC5hLmV4YW1wbGUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATOgSn71eNPqbUjqNMzSgISmTy09u2hHqHg/CtTL8R+MOwXf/rYg+4ef458zjQggQeumwtXXUfSldBba59yre/0o2wwajAdBgNVHQ4EFgQULDmETYqmCNlpv/BQ8Gf96zGdBpgwHwYDVR0jBBgwFoAULDmETYqmCNlpv/BQ8Gf96zGdBpgwDwYDVR0TAQH/BAUwAwEB/zAXBgNVHREEEDAOggxteC5hLmV4YW1wbGUwCgYIKoZIzj0EAwIDSAAwRQIgEIulW+40Ps4RU9IvaaOS846fRYezUf5qRumumNzRnqoCIQD529ozRk611bQUVsiPy4ih51uSjsBj4XVj//gDuavCkg==',
  leaf: 'MIIBiDCCAS6gAwIBAgIURNGUOaSjhpRJVkLM/z5K2kWSoq0wCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHY2EudGVzdDAgFw0yNjExMjcxMjMxNTdaGA8yMTI2MTEwMzEyMzE1N1owFzEVMBMGA1UEAwwMbXguYS5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE4J07Yrg1UIDcYUzVwkCcuCNCmoLGvRHCc63ivt4EhiGG/GBip2DQw4svzRQJNWL7m6szdku43ML2eEYtMQQ6caNbMFkwFwYDVR0RBBAwDoIMbXguYS5leGFtcGxlMB0GA1UdDgQWBBRd5yMoSpvnY3i3SNlwFOJ3x7gj/DAfBgNVHSMEGDAWgBSh7uNF4cmwgvrDvyuAk1mhJDj6MjAKBggqhkjOPQQDAgNIADBFAiEA8gi72iKUs7rhV7TxEPxHWYFjqeTNEk9VqEbPXs7pBTECIFfZkWV4C7ZDZQKYJWngYhEBmAmFOoHxe6sI/nRcZlrS',
  other: 'MIIBgTCCASigAwIBAgIURNGUOaSjhpRJVkLM/z5K2kWSorAwCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHY2EudGVzdDAgFw0yNjExMjcxMjM0MTBaGA8yMTI2MTEwMzEyMzQxMFowFDESMBAGA1UEAwwJYS5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEKSpv+2hLWo+dJFCWI5gvX+qPzlYP56+nqaut1vH9Vf30EXSfblQEcJL0dwH3VMoVv2X6Tn0Bt6yMD5AWTBEybaNYMFYwFAYDVR0RBA0wC4IJYS5leGFtcGxlMB0GA1UdDgQWBBQlWFJkXjuZPzAAuzvAfavRu4b+yDAfBgNVHSMEGDAWgBSh7uNF4cmwgvrDvyuAk1mhJDj6MjAKBggqhkjOPQQDAgNHADBEAiBcrwXJdANoBCPtvXSE3TGi0OpBpxWhsqB7nRJgPlnyngIgDb6t+cdJpZ9xeGN48eot+24Yqk4La2zvlOJfGZqV7i0=',
  over: 'MIIBhjCCASygAwIBAgIURNGUOaSjhpRJVkLM/z5K2kWSoq8wCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHY2EudGVzdDAeFw0yNjExMjcxMjMxNTdaFw0yNjExMjgxMjMxNTdaMBcxFTATBgNVBAMMDG14LmEuZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABF9waYfJvF4VJ6MdFwFhL5JL3KaePsQLbSUD7IDSINPhK55kxJRwuLKgbtUGGArgjSUfE57yWMzOMNbXee83z6ajWzBZMBcGA1UdEQQQMA6CDG14LmEuZXhhbXBsZTAdBgNVHQ4EFgQUafaDj8la7YiKFFPIgTE87Rt/U78wHwYDVR0jBBgwFoAUoe7jReHJsIL6w78rgJNZoSQ4+jIwCgYIKoZIzj0EAwIDSAAwRQIhAPkKEIMfut8kdR4dpe01x0yVIOd3YVBlrWNO+sVG05DfAiA4eN1IPxwTU1JNv65ytcq4QH/xJxk7I2zSeuimWgbaTQ==',
};

function made(name: TestCertificate['name'], host: string, signer: TestCertificate['signer']): TestCertificate {
  const der = Buffer.from(DER[name], 'base64');
  const spki = new X509Certificate(der).publicKey.export({ type: 'spki', format: 'der' });
  return { name, der, spki, host, signer, isOver: name === 'over' };
}

/** While only `over` has expired. */
export const CERTIFICATES_WALL_MS = Date.UTC(2027, 5, 1);
/** Both that have signed themselves may sign. */
export const CA = made('ca', 'ca.test', 'ca');
export const STRANGER = made('stranger', 'mx.a.example', 'stranger');
export const LEAF = made('leaf', 'mx.a.example', 'ca');
export const OTHER = made('other', 'a.example', 'ca');
export const OVER = made('over', 'mx.a.example', 'ca');
