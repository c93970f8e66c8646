"use strict";
// Draws charts that answer to the pointer in the place of their pictures, each when it comes into view.
(async () => {
  const unpacked = (id) => {
    const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (one) => one.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  const script = document.createElement("script");
  script.textContent = await unpacked("plotly");
  document.head.append(script);
  const charts = JSON.parse(await unpacked("live"));
  const draw = (place) => {
    const { data, layout, config } = charts[place.dataset.chart];
    place.parentElement.classList.add("live-drawn");
    return Plotly.newPlot(place, data, { ...layout, paper_bgcolor: "rgba(0,0,0,0)" }, { ...config, responsive: true });
  };
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      draw(target.querySelector(".live"));
    }
  });
  document.querySelectorAll(".chart-wide:has(.live)").forEach((one) => seen.observe(one));
})();
