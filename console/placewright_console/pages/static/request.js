// Requests to the server of these pages. An operator's console wants a token of the API server, which is kept in this module alone: a reload
// or the end of the tab forgets it. A console on this machine gives out a token of its own for the secret in its address. That token is kept
// in the storage of this origin, for a reload and for other tabs: pages of other ports cannot read it, and it opens nothing once that console
// has ended. Both are sent in a header, which a browser adds to no request by itself. A cookie would go to every port of 127.0.0.1.

const SESSION = "placewright-console";
let token = stored((storage) => storage.getItem(SESSION)) ?? "";

/** Characters that a header takes; a token with others was not copied whole. */
export const isToken = (text) => /^[\x21-\x7e]+$/.test(text);

/** Send this token with every request from now on; an empty one is sent with none. */
export function identify(text) {
  token = text;
}

/** Exchange the one-time secret of a console on this machine for its token, and send that from now on. Returns the answer. */
export async function enterWith(secret) {
  const answer = await request("api/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ secret }),
  });
  if (answer.ok) {
    identify(await answer.text());
    stored((storage) => storage.setItem(SESSION, token));
  }
  return answer;
}

/** Use the storage, where the browser has one for these pages. */
function stored(use) {
  try {
    return use(localStorage);
  } catch {
    return null;
  }
}

/** Fetch a path below the page's own. */
export function request(path, options = {}) {
  const headers = new Headers(options.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  return fetch(path, { cache: "no-store", ...options, headers });
}
