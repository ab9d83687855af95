// The form that asks for a token, where the operator serves these pages. The token goes to request.js and is kept nowhere else.

import { el, fill } from "./element.js";
import { identify, isToken } from "./request.js";

/**
 * Ask for a token.
 * @param {Element} root is filled with the form.
 * @param {string} told what the server said; nothing where it was asked without a token.
 * @param {boolean} known whether the server knows who asks, and refuses.
 * @returns {Promise<void>} resolved when there is another token to try.
 */
export function askForToken(root, told, known) {
  return new Promise((entered) => {
    const complaint = el("p", { class: "complaint", role: "alert", id: "complaint" }, told);
    const input = el("input", {
      type: "password",
      id: "token",
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      required: true,
      "aria-describedby": "complaint",
    });
    const submit = (event) => {
      event.preventDefault();
      const text = input.value.trim();
      input.value = "";
      if (!isToken(text)) return fill(complaint, "This is no token: it has characters that no token has. Copy it whole, and nothing else.");
      identify(text);
      entered();
    };
    fill(
      root,
      el(
        "section",
        { class: "panel stack door" },
        el("h1", {}, known ? "You may not look in here" : "Who is asking?"),
        el(
          "p",
          {},
          known
            ? "The API server knows you, and does not let you in. A person who may write roles can bind you to the ClusterRole placewright-console."
            : "The API server decides what you may see here, so it has to know you by a token.",
        ),
        complaint,
        el(
          "form",
          { class: "find", on: { submit } },
          el("label", { class: "field" }, "Token", input),
          el("button", { type: "submit" }, "Enter"),
        ),
        el(
          "p",
          { class: "small" },
          "Make one that lasts an hour: ",
          el("code", { class: "mono" }, "kubectl create token SERVICEACCOUNT -n NAMESPACE"),
        ),
        el("p", { class: "small muted" }, "It stays in the memory of this page: a reload or the end of the tab forgets it."),
      ),
    );
    input.focus();
  });
}
