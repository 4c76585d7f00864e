/*
 * Mends one call of OpenSMTPD 6.8 with OpenSSL 3, for tests where it is the server of TLS.
 *
 * Its network process has no private keys: it makes an RSA key out of the certificate, marks it with the name of the
 * true one, and lets another process sign. OpenSSL 3 gives it a copy to mark, and signs by the unmarked original:
 * "missing private key" at each handshake (OpenSMTPD's issues 1171 and 1239). Debian 12 has this version. Here a key is
 * made of the marked copy before it is used; all else is OpenSMTPD's own. Loaded before all libraries (LD_PRELOAD).
 */
typedef struct evp_pkey_st EVP_PKEY;
typedef struct rsa_st RSA;
typedef struct ssl_ctx_st SSL_CTX;

EVP_PKEY *EVP_PKEY_new(void);
void EVP_PKEY_free(EVP_PKEY *);
RSA *EVP_PKEY_get1_RSA(EVP_PKEY *);
int EVP_PKEY_set1_RSA(EVP_PKEY *, RSA *);
void RSA_free(RSA *);
void *dlsym(void *, const char *);

/* RTLD_NEXT of dlfcn.h: no header is needed, so that gcc alone is enough. */
#define NEXT ((void *)-1L)

int SSL_CTX_use_PrivateKey(SSL_CTX *context, EVP_PKEY *original)
{
	int (*use)(SSL_CTX *, EVP_PKEY *) = dlsym(NEXT, "SSL_CTX_use_PrivateKey");
	RSA *marked = EVP_PKEY_get1_RSA(original);
	EVP_PKEY *key = EVP_PKEY_new();
	int done = marked != 0 && key != 0 && EVP_PKEY_set1_RSA(key, marked) == 1 && use(context, key) == 1;

	RSA_free(marked);
	EVP_PKEY_free(key);
	return done;
}
