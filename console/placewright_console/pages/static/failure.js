// Failures as sentences. Whatever goes wrong on the way to an answer becomes words for a person here, and nowhere else.

/** What is meant for programs: JSON, a page of markup, and objects as Python or a traceback writes them. */
const FOR_PROGRAMS = /^[[{]|^<(?:!doctype|html|\?xml)|<\S[^>]* object at 0x|Traceback \(most recent/i;
const LONGEST = 400;

/** A server's words as a sentence; nothing where they are for programs. */
export function sentence(text) {
  const said = String(text).replace(/\s+/g, " ").trim();
  if (!said || FOR_PROGRAMS.test(said)) return "";
  const whole = said.length > LONGEST ? `${said.slice(0, LONGEST)}…` : said;
  const begun = whole.replace(/^[a-z]+(?=[ ,:])/, (word) => word[0].toUpperCase() + word.slice(1));
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

/**
 * Why an answer is none.
 * @param {Response|Error|null} answer an error, or nothing, where there was no answer at all
 * @returns {Promise<string>}
 */
export async function failure(answer) {
  if (!(answer instanceof Response)) return "The console does not answer.";
  return sentence(await answer.text().catch(() => "")) || `The console answers with status ${answer.status}, and gives no reason.`;
}
