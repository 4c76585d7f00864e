/** The folder of this package, wherever in it the build put this file: package.json and dist/ are in it. */
import { existsSync } from 'node:fs';

export const PROJECT_FOLDER = nearest(new URL('.', import.meta.url));

function nearest(folder: URL): URL {
  const above = new URL('..', folder);
  return existsSync(new URL('package.json', folder)) || above.href === folder.href ? folder : nearest(above);
}
