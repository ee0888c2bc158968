"""`headwater models`: map language models by what their answers depend on."""

import typer

from engine.cli import (
    models_add,
    models_embed,
    models_forecast,
    models_map,
    models_relate,
    models_route,
    models_stability,
    models_zoo,
)


app = typer.Typer(
    no_args_is_help=True,
    help="Models: build a zoo of known lineage, embed models, map and compare them.",
)
app.command()(models_zoo.zoo)
app.command()(models_embed.embed)
app.command()(models_relate.relate)
app.command()(models_relate.neighbours)
app.command()(models_route.route)
app.command()(models_forecast.forecast)
app.command()(models_forecast.select)
app.command()(models_stability.stability)
app.command("map")(models_map.draw)
app.command()(models_add.add)
