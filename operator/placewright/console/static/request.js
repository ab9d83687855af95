// Requests to the server of these pages. A token, where the server wants one, is kept in this module alone: a reload or the end of the tab
// forgets it. Storage would outlive that: browsers keep a tab's sessionStorage on disk to restore the tab, and copy it to tabs opened from it.

let token = "";

/** Characters that a header takes; a token with others was not copied whole. */
export const isToken = (text) => /^[\x21-\x7e]+$/.test(text);

/** Send this token with every request from now on; an empty one is sent with none. */
export function identify(text) {
  token = text;
}

/** Fetch a path below the page's own. */
export function request(path, options = {}) {
  const headers = new Headers(options.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  return fetch(path, { cache: "no-store", ...options, headers });
}
