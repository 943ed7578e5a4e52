// Light and dark: as the system says, unless one was chosen.
let chosenTheme = null; // "light" or "dark"
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  background = (0xff000000 | parseHex(cssVariable("--paper"))) >>> 0;
  dimmedColor = parseHex(cssVariable("--faint"));
  if (colorColumn) {
    updateColors();
    showLegend();
  }
  redraw();
}

function chooseTheme(name) {
  chosenTheme = name;
  setTheme(name ? name === "dark" : systemIsDark.matches);
  stateChanged();
}

function listenToTheme() {
  $("theme").addEventListener("click", () => chooseTheme(isDark() ? "light" : "dark"));
  systemIsDark.addEventListener("change", () => { if (!chosenTheme) setTheme(systemIsDark.matches); });
}
