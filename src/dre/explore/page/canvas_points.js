// Points written straight into the pixels of a canvas: the renderer for browsers without WebGL2.
// The pixels of an antialiased disc: [dx, dy, coverage from 0 to 1].
function disc(radius) {
  const reach = Math.ceil(radius), found = [];
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const coverage = Math.min(1, Math.max(0, radius + 0.5 - Math.hypot(dx, dy)));
      if (coverage > 0.05) found.push([dx, dy, coverage]);
    }
  }
  return found;
}

class CanvasPoints {
  frame = null;

  draw(map, radius) {
    const { canvas, context } = map;
    if (!this.frame || this.frame.width !== canvas.width || this.frame.height !== canvas.height) {
      this.frame = context.createImageData(canvas.width, canvas.height);
      this.pixels = new Uint32Array(this.frame.data.buffer);
    }
    this.pixels.fill(background);
    if (highlighted) {
      this.drawDiscs(map, 0, radius, 0.5);
      map.visible = this.drawDiscs(map, 1, Math.max(radius, 1.6 * map.view.ratio), 1);
    } else {
      map.visible = this.drawDiscs(map, null, radius, n > 20000 ? 0.75 : 0.9);
    }
    context.putImageData(this.frame, 0, 0);
  }

  // Blends the discs of all points, or of those with this highlight (0 or 1), into the pixels; returns how many are visible.
  drawDiscs(map, highlight, radius, opacity) {
    const { view, now: { x, y }, canvas: { width, height } } = map, { pixels } = this, shape = disc(radius), count = shape.length;
    const offsets = Int32Array.from(shape, ([dx, dy]) => dy * width + dx);
    const alphas = Int32Array.from(shape, ([, , coverage]) => Math.round(256 * coverage * opacity));
    const scale = view.scale * view.ratio, x0 = width / 2 - view.x * scale, y0 = height / 2 + view.y * scale, reach = Math.ceil(radius) + 1;
    let visible = 0;
    for (let k = 0; k < n; k++) {
      const i = drawOrder[k];
      if (highlight !== null && highlighted[i] !== highlight) continue;
      const px = (x[i] * scale + x0 + 0.5) | 0, py = (y0 - y[i] * scale + 0.5) | 0;
      if (px < reach || py < reach || px >= width - reach || py >= height - reach) continue;
      visible++;
      const center = py * width + px, color = highlight === 0 ? dimmedColor : colors[i];
      const redBlue = color & 0xff00ff, green = color & 0x00ff00;
      for (let j = 0; j < count; j++) {
        const at = center + offsets[j], alpha = alphas[j], under = pixels[at], rest = 256 - alpha;
        const rb = ((Math.imul(under & 0xff00ff, rest) + Math.imul(redBlue, alpha)) >>> 8) & 0xff00ff;
        const g = ((Math.imul(under & 0x00ff00, rest) + Math.imul(green, alpha)) >>> 8) & 0x00ff00;
        pixels[at] = 0xff000000 | rb | g;
      }
    }
    return visible;
  }
}
