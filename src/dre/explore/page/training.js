// A training on its page: a badge on the map, and a section with the stage, a sentence and the losses.
function showTraining() {
  $("sections").prepend(make("section", { id: "training" }, make("h2", {}, "Training"),
    make("p", { id: "training-stage" }), make("p", { id: "training-doing", class: "quiet" }), make("div", { id: "losses", hidden: true })));
  $("map").append(make("p", { id: "training-badge", role: "status" }));
}

function showState(word, text, kind) {
  $("training-badge").className = kind;
  $("training-badge").replaceChildren(make("span", { class: "light" }), make("span", {}, make("b", {}, word), text ? ` · ${text}` : ""));
}

// A curve for each phase, with a scale of its own: losses of different targets can't be compared.
function showLosses(phases) {
  $("losses").hidden = !phases.length;
  $("losses").replaceChildren(...phases.map(([title, values]) => {
    const low = Math.min(...values), span = Math.max(...values) - low || 1, last = Math.max(1, values.length - 1);
    const points = values.map((value, k) => `${((100 * k) / last).toFixed(2)},${(50 - (46 * (value - low)) / span).toFixed(2)}`);
    if (points.length === 1) points.push(`100,${points[0].split(",")[1]}`);
    const latest = String(Number(values[values.length - 1].toPrecision(4)));
    return make("figure", { title: `${title}: loss ${latest}` },
      makeSvg("svg", { viewBox: "0 0 100 54", preserveAspectRatio: "none", role: "img", "aria-label": `${title}: loss ${latest}` },
        makeSvg("polyline", { points: points.join(" ") })),
      make("figcaption", {}, make("span", {}, title.replace(/^stage /, "")), make("span", {}, latest)));
  }));
}
