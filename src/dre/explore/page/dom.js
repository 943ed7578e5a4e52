// Elements made from text nodes and attributes only: data is never interpreted as HTML.
const SVG = "http://www.w3.org/2000/svg";

// An attribute that is null, undefined or false is left out; children are elements or texts.
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const makeSvg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const makeButton = (attributes, ...children) => make("button", { type: "button", ...attributes }, ...children);

const makeDot = (color) => make("span", { class: "dot", style: `background: ${cssColor(color)}` });

// Labels below an axis: [place from 0 to 1, text] each.
function makeAxis(places) {
  const label = ([place, text]) => make("span", { style: `left: ${100 * place}%; --at: ${place}` }, text);
  return make("div", { class: "axis" }, ...places.map(label));
}

function onClick(element, action) {
  element.addEventListener("click", action);
  return element;
}

const grouped = (count) => count.toLocaleString("en");
const plural = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;

const shorten = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

function saveFile(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Calls of the same function within a frame become one, with the last arguments.
function oncePerFrame(action) {
  let waiting = null;
  return (...given) => {
    if (!waiting) {
      requestAnimationFrame(() => {
        const last = waiting;
        waiting = null;
        action(...last);
      });
    }
    waiting = given;
  };
}
